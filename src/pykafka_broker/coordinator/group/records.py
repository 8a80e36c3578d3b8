"""The records of offsets, as Apache Kafka 4.3 writes them into `__consumer_offsets`, and how records of all
kinds rebuild the coordinator's state.

OffsetCommit has value version 4, or version 1 when the commit carried its own retention. Older versions are
read. The records of groups are in `classic/records.py` and `consumer/records.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from pykafka_broker.coordinator.group.classic.records import group_from_record
from pykafka_broker.coordinator.group.classic.state import ClassicGroup
from pykafka_broker.coordinator.group.consumer import records as consumer_records
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.pending import PendingOffsets
from pykafka_broker.coordinator.group.record import Record
from pykafka_broker.coordinator.group.state import NO_EXPIRY, CommittedOffset, Group, Groups
from pykafka_broker.coordinator.group.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.coordinator.versioned_map import VersionedMap
from pykafka_broker.protocol.messages.records.group import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

OFFSET_COMMIT_VALUE_VERSION = 4
#: The only version that has room for an expiry time; it has none for the leader epoch and the topic id.
OFFSET_COMMIT_WITH_EXPIRY_VALUE_VERSION = 1

#: What stands in the log of a shard.
Entry = Union[Record, TransactionalRecord, TransactionEnd]

# ---- what transitions emit ----


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Record:
    """The record of a committed offset."""
    expires_ms = committed.expire_timestamp_ms
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=expires_ms,
        topic_id=committed.topic_id,
    )
    return Record(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        value,
        OFFSET_COMMIT_WITH_EXPIRY_VALUE_VERSION if expires_ms != NO_EXPIRY else OFFSET_COMMIT_VALUE_VERSION,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    """The record that a partition has no committed offset any more."""
    return Record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


# ---- replay ----


class Replay:
    """Folds records into a state, each in O(1): it fills plain dicts until `state` is asked for."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending = PendingOffsets.empty()

    def _keep_pending(self, entry: TransactionalRecord) -> None:
        key, value = entry.record.key, entry.record.value
        assert isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue), entry
        if key.group not in self._groups:
            self._groups[key.group] = ClassicGroup(key.group)
        place = key.topic, key.partition
        committed = offset_from_record(value)
        self._pending = self._pending.with_offset(entry.producer_id, key.group, place, committed)

    def supersede(self, key: OffsetCommitKey) -> None:
        """A later offset than all pending ones of its partition counts."""
        self._pending = self._pending.superseded(key.group, (key.topic, key.partition))

    def _end_transaction(self, producer_id: int, *, commit: bool) -> None:
        self._pending, counting = self._pending.ended(producer_id, commit=commit)
        for group_id, (topic, partition), committed in counting:
            self._offsets.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def apply(self, entry: Entry) -> None:
        """Take in one record or marker; later records win over earlier ones of the same key."""
        if isinstance(entry, TransactionalRecord):
            self._keep_pending(entry)
        elif isinstance(entry, TransactionEnd):
            self._end_transaction(entry.marker.producer_id, commit=entry.marker.commit)
        else:
            self._apply_record(entry)

    def _apply_record(self, record: Record) -> None:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            if self._pending.by_group:
                self._overtake_pending(key, deletes=value is None)
            if value is None:
                self._forget_offset(key.group, key.topic, key.partition)
                return
            assert isinstance(value, OffsetCommitValue)
            if key.group not in self._groups:
                self._groups[key.group] = ClassicGroup(key.group)
            topics = self._offsets.setdefault(key.group, {})
            topics.setdefault(key.topic, {})[key.partition] = offset_from_record(value)
            return
        group_id = group_of(key)
        group = after(self._groups.get(group_id), record)
        if group is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = group

    def _overtake_pending(self, key: OffsetCommitKey, *, deletes: bool) -> None:
        if deletes:
            self._pending = self._pending.without_place(key.group, (key.topic, key.partition))
        else:
            self.supersede(key)

    def _forget_offset(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._offsets.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._offsets.pop(group_id, None)

    def state(self) -> Groups:
        """The state so far; the fold is over then, its dicts belong to the state."""
        offsets = {
            group_id: VersionedMap.owning(
                {topic: VersionedMap.owning(partitions) for topic, partitions in topics.items()}
            )
            for group_id, topics in self._offsets.items()
        }
        consumer_group_ids = {
            group_id: True for group_id, group in self._groups.items() if isinstance(group, ConsumerGroup)
        }
        return Groups(
            VersionedMap.owning(self._groups),
            VersionedMap.owning(offsets),
            VersionedMap.owning(consumer_group_ids),
            self._pending,
        )


def group_of(key: object) -> str:
    """The group that a record of a group, not of an offset, is about."""
    if isinstance(key, GroupMetadataKey):
        return key.group
    assert isinstance(key, consumer_records.ConsumerGroupKey), key
    return key.group_id


def after(group: Group | None, record: Record) -> Group | None:
    """What `record` makes of its group; None stands for no group.

    A simple group, which only stores offsets, gives way to a consumer group: the offsets of that may be read
    before it. Otherwise a group is not of two kinds at once; what belongs to the other kind is ignored.
    """
    key, value = record.key, record.value
    if isinstance(key, GroupMetadataKey):
        if value is None:
            return None if isinstance(group, ClassicGroup) else group
        assert isinstance(value, GroupMetadataValue)
        return group_from_record(key.group, value)
    if isinstance(group, ClassicGroup):
        if value is None or not group.is_simple:
            return group
        group = None
    return consumer_records.apply(group, record)


def replay(entries: Iterable[Entry]) -> Groups:
    """The durable state that records and markers lead to."""
    fold = Replay()
    for entry in entries:
        fold.apply(entry)
    return fold.state()


def offset_from_record(value: OffsetCommitValue) -> CommittedOffset:
    """The committed offset in a record's value."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )
