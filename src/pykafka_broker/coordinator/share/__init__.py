"""The share coordinator over its shards: `service` routes requests, `keys` writes share partitions as text
for FindCoordinator and the routes, `settings` tells it of the configuration, the level of the feature, and
the topics that are gone.

`persister` asks share coordinators for the group coordinator and for the leaders of partitions: `questions`
has what can be asked, `remote_states` asks other brokers, and `attempts` decides when a question is asked
again.
"""
