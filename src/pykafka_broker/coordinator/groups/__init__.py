"""The group coordinator over its shards: `service` routes requests, `follower` brings settings and topics,
`share_work` does what share groups ask share coordinators for.
"""
