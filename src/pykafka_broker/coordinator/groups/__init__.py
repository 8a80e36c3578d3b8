"""The group coordinator over its shards: `service` routes requests, `settings` tells it of the configuration
and of the cluster's topics, `share_work` does what share groups ask share coordinators for.
"""
