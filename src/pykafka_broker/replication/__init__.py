"""The partitions held by this node, and the rules of replication around their logs.

    core/                  the decisions: high watermark, ISR, who may read and write, and what an answer of a
                           leader means (pure)
    partition.py           one partition: its log, what the metadata says of it, and its role
    leading_replica.py     the role of a leader, over the core: appends, its followers, the ISR
    committing.py          its high watermark, and the producers that wait
    flushing.py            its syncs that `flush.messages` asks for
    records_deletion.py    its DeleteRecords, and who waits for it
    sending.py             its throttle of what followers are sent
    waiting.py             clients that wait for other replicas
    replica_manager.py     all partitions, kept as the metadata image says
    awaited_followers.py   the followers that have yet to find a new leader here
    log_dir_moves.py       moves a partition from one log directory to another
    following_replica.py   the role of a follower, over the core: what the leader's answers do to the log
    replica_fetcher.py     copies partitions from one leading broker
    replica_fetchers.py    all fetchers, as the metadata names leaders
    broker_connections.py  connections to other brokers, for the coordinators

Fetches of assigned followers come in through `apis/fetch.py`: `LeadingReplica.follower_fetched` hands a
`FollowerFetched` to `core.transitions.transition`, moves the high watermark, and gives the effect,
`AlterPartition`, to the port `IsrChanges` (`membership/isr_changes.py`). With acks=all,
`Committing.acknowledged` waits for the high watermark where followers count; `RecordsDeletion.everywhere`
waits for the low watermark.

A partition that is given to other brokers is dropped like one of a deleted topic: `ReplicaManager` resigns
it, tells its `Roles`, and deletes its log.

Where this node follows, `replica_fetchers.py` is told so through `Roles.follow`. A fetcher's
`FollowingReplica` gives batches as the leader has them to `PartitionLog.replica_writer`, goes by the leader's
high watermark and log start offset, and truncates to the epoch at which the logs diverge. The broker starts
and stops the fetchers (`broker/replica_fetching.py`).
"""
