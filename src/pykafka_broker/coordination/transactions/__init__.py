"""The transaction coordinator over its shards: `service` routes requests, `settings` follows the cluster."""
