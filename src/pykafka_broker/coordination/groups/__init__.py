"""The group coordinator over its shards: `service` routes requests, `follower` brings settings and topics."""
