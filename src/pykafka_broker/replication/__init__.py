"""The partitions held by this node, and the rules of replication around their logs.

    core/                what is decided: high watermark, ISR, who may read and write (pure)
    partition.py         one partition: its log and what the core knows of it
    replica_manager.py   all partitions, kept as the metadata image says
    log_dir_moves.py     moves a partition from one log directory to another

Every partition has one replica so far, and no broker follows another. What replication between brokers adds:

* Fetches of followers come in through `apis/fetch.py`, which asks `Partition.limit_for_replica`. There the
  partition hands a `FollowerFetched` to `core.transitions.transition`, and moves the high watermark. The
  effect, `AlterPartition`, goes to the controller; `Partition.acknowledged` waits for the high watermark.
* `replica_fetchers.py`, above `partition.py`, fetches from leaders: one fetcher per leading broker, on the
  client in `client/`. `ReplicaManager` gives it partitions as they are led elsewhere, through a port like
  `Roles`; it writes to their logs through `Partition`, beside `append`: batches as the leader has them, the
  leader's high watermark and log start offset, and truncation to the epoch at which the logs diverge. The
  broker starts and stops the fetchers beside `LogDirMoves`.
"""
