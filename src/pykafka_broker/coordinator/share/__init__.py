"""The share coordinator over its shards: `service` routes requests, `keys` has the words for share
partitions that FindCoordinator and the routes go by, `settings` tells it of the configuration, the level of
the feature, and the topics that are gone.

`persister` asks share coordinators for the group coordinator and for the leaders of partitions: `questions`
has what can be asked, `remote_states` asks other brokers, and `attempts` decides when a question is asked
again.
"""
