"""The partitions held by this node, and the rules of replication around their logs.

    core/                  the decisions: high watermark, ISR, who may read and write, and how a follower
                           handles the leader's answers (pure)
    partition.py           one partition: its log, its registration in the metadata, and its role
    leading_replica.py     the role of a leader, over the core: appends, its followers, the ISR
    committing.py          its high watermark, and the producers that wait
    flushing.py            its syncs if `flush.messages` is set
    records_deletion.py    its DeleteRecords, and the clients that wait for it
    leader_throttle.py     its throttle for followers
    lagging.py             why a follower is not in sync, in words
    waiting.py             clients that wait for other replicas
    replica_manager.py     all partitions, kept in line with the metadata image
    awaited_followers.py   the followers that have not yet fetched from a new leader here
    log_dir_moves.py       moves a partition from one log directory to another
    following_replica.py   the role of a follower, over the core: applies the leader's answers to the log
    replica_fetcher.py     copies partitions from one leading broker
    replica_fetchers.py    all fetchers, by the leaders in the metadata
    broker_connection.py   a connection to another broker

Fetches of assigned followers come in through `apis/fetch.py`: `LeadingReplica.follower_fetched` gives a
`FollowerFetched` to `core.transitions.transition`, moves the high watermark, and gives the effect,
`IsrProposal`, to the port `IsrChanges` (`membership/isr_changes.py`). With acks=all,
`Committing.acknowledged` waits for the high watermark if followers count; `RecordsDeletion.everywhere` waits
for the low watermark.

A partition that moves to other brokers is dropped like one of a deleted topic: `ReplicaManager` resigns it,
tells its `Roles`, and deletes its log.

If this node follows, `Roles.follow` tells `replica_fetchers.py`. A fetcher's `FollowingReplica` gives the
leader's batches unchanged to `PartitionLog.replica_writer`, takes over the leader's high watermark and log
start offset, and truncates where the logs diverge. The broker starts and stops the fetchers
(`broker/replica_fetching.py`).
"""
