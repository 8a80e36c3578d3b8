"""Cluster metadata, pure: the records, and the image that they make."""
