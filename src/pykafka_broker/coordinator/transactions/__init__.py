"""The transaction coordinator over its shards: `service` routes requests, `settings` tells it of the
configuration and the level of its feature.
"""
