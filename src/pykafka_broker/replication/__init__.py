"""The partitions held by this node, and the rules of replication around their logs.

    core/                the decisions: high watermark, ISR, who may read and write (pure)
    partition.py         one partition: its log and its state in the core
    replica_manager.py   all partitions, kept as the metadata image says
    log_dir_moves.py     moves a partition from one log directory to another

Fetches of assigned followers come in through `apis/fetch_plan.py`: `Partition.follower_fetched` hands a
`FollowerFetched` to `core.transitions.transition`, moves the high watermark, and gives the effect,
`AlterPartition`, to the port `IsrChanges`. With acks=all, `Partition.acknowledged` waits for the high
watermark where followers count.

Every partition has one replica so far, and no broker follows another. Replication between brokers will add:

* AlterPartition in `metadata/controller_channel.py`, and an `IsrChanges` that asks for it in place of
  `broker/isr_changes.py` `RefusedIsrChanges`.
* `replica_fetchers.py`, above `partition.py`, fetches from leaders: one fetcher per leading broker, on the
  client in `client/`. `ReplicaManager` tells it through `Roles.follow` which partitions are led elsewhere; it
  writes to their logs through `Partition`, beside `append`: batches as the leader has them, the
  leader's high watermark and log start offset, and truncation to the epoch at which the logs diverge. The
  broker starts and stops the fetchers beside `LogDirMoves`.
* A partition that is reassigned away: `ReplicaManager.apply` only removes partitions of deleted topics, and
  passes over a partition whose replicas no longer include this node. Like Kafka's StopReplica, it then has to
  resign that partition, tell its `Roles`, stop its fetcher, and delete its log.
"""
