"""The transaction coordinator's pure core."""
