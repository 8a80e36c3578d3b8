"""The coordinators of this node: services that route requests to shards. A shard (`machine/shard.py`) runs a
pure core over a partition's log.

    coordinators        builds all of it; the broker and the handlers reach the services through it
    coordinator_topic   loads the partitions that this node leads, unloads those that go
    groups/             the group service, over one shard per partition of `__consumer_offsets`
    transactions/       the transaction service, over one shard per partition of `__transaction_state`
    share/              the share service, over one shard per partition of `__share_group_state`
    shards              finds the shard of an id, and makes shards from logs
    end_offsets         finds the high watermarks of partitions, for the lag of share groups
    kept_connections    connections to other brokers, kept for the coordinators
    broker_queues       joins questions to other brokers into requests

Each of the three coordinators keeps its decisions in `core/`, with the same parts around them. An API handler
builds the event of its request; `service.answer(id, event_with, refused=...)` routes it to the shard of the
id. `service.shards` loads and unloads partitions and holds the work that shards have started. `refusals` has
the answers where no shard takes the event, and `settings` reads a service's values from the broker's
configuration and the cluster's metadata.

The share coordinator keeps the state of share partitions (KIP-932). Share groups themselves, and streams
groups (KIP-1071), are kinds of groups: `groups/core/kinds.py`.
"""
