"""The state of the share coordinator: the progress of each share group in each partition.

`Shares` is the state of one shard, that is, of one partition of `__share_group_state`. All of it is immutable
and durable: records rebuild it. A *share partition* is a partition as one share group consumes it; its leader
keeps the records in flight, and stores here what must survive a change of the leader.

    start offset     all records before it are done
    state batches    from there on: ranges of offsets with a delivery state and a delivery count
    state epoch      grows when an administrator resets the group's offsets: older ones are fenced
    leader epoch     grows with the leader of the partition, by its reads: older ones are fenced
    snapshot epoch   grows with each snapshot; an update belongs to the snapshot before it
"""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

#: The start offset of a share partition whose group has not chosen one; in a write: unchanged.
NO_START_OFFSET = -1
#: In a request: the epoch is not to be checked.
NO_EPOCH = -1
#: The number of complete deliveries is unknown: a record or a request from before Kafka 4.2.
NO_COUNT = -1
#: Lower than any epoch: none has been recorded.
LOWEST_EPOCH = -(1 << 31)
#: No snapshot is in the log.
NO_OFFSET = -1


class ShareState(NamedTuple):
    """What snapshots hold of one share partition. Times are in ms since 1970."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    #: How many records from the start offset on are acknowledged or archived.
    delivery_complete_count: int
    #: In the order of offsets; none overlaps another.
    batches: tuple[StateBatch, ...]
    #: The times of the last snapshot for a request, and of the last snapshot, even an idle one.
    create_timestamp_ms: int
    write_timestamp_ms: int


class ShareEntry(NamedTuple):
    """The state of a share partition, and facts about its records."""

    state: ShareState
    #: The highest epochs recorded: requests with lower ones are fenced.
    highest_leader_epoch: int
    highest_state_epoch: int = LOWEST_EPOCH
    #: Updates since the last due snapshot. As in Kafka an early snapshot does not reset it.
    update_count: int = 0
    #: The offset of the newest snapshot in the log; older records are redundant.
    snapshot_offset: int = NO_OFFSET


class ShareCoordinatorConfig(NamedTuple):
    """The configuration values the coordinator acts on; may be swapped while it runs."""

    snapshot_update_records_per_snapshot: int = 500
    cold_partition_snapshot_interval_ms: int = 300_000
    state_topic_prune_interval_ms: int = 300_000
    #: Whether share groups are enabled: the finalised level of share.version.
    is_enabled: bool = True


class Shares(NamedTuple):
    """Everything one shard knows."""

    by_key: VersionedMap[SharePartitionKey, ShareEntry]
    #: The offset of the newest deletion: all earlier records are redundant if no share partition is left.
    deletion_offset: int = NO_OFFSET

    @classmethod
    def empty(cls) -> Shares:
        """The state of a shard whose partition is empty."""
        return cls(VersionedMap())

    def redundant_offset(self) -> int | None:
        """The offset before which no record is needed any more; None if all records are needed.

        That is the oldest of the newest snapshots. An idle share partition would keep the whole log, which is
        why it gets new snapshots.
        """
        snapshots = (
            entry.snapshot_offset for entry in self.by_key.values() if entry.snapshot_offset != NO_OFFSET
        )
        offset = min(snapshots, default=self.deletion_offset)
        return offset if offset > 0 else None
