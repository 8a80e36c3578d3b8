"""The transaction coordinator over its shards: `service` routes requests, `follower` brings settings and the
level of its feature.
"""
