"""The replay of records of all kinds, which rebuilds the coordinator's state.

The records of offsets are in `offset_record.py`, those of groups in `classic/records.py`,
`consumer/records.py`, `share/records.py` and `streams/records.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Union, get_args

from pykafka_broker.coordinator.groups.core.classic.records import group_from_record
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.consumer import records as consumer_records
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.pending import PendingOffsets
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.share import records as share_records
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.coordinator.groups.core.streams import records as streams_records
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.messages.records.group import GroupMetadataKey, GroupMetadataValue
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The records of each kind but the classic one: the class of the group, the keys, and how they change it.
_OF_KINDS: tuple[tuple[type, Any, Callable[[Any, Record], Any]], ...] = (
    (ConsumerGroup, consumer_records.ConsumerGroupKey, consumer_records.apply),
    (ShareGroup, share_records.ShareGroupKey, share_records.apply),
    (StreamsGroup, streams_records.StreamsGroupKey, streams_records.apply),
)
#: By the class of the key: the class of the group, and how the record changes it.
BY_KEY = {key: (group, apply) for group, keys, apply in _OF_KINDS for key in get_args(keys)}

#: An entry in the log of a shard.
Entry = Union[Record, OffsetRecord, TransactionalRecord, TransactionEnd]


class Replay:
    """Builds a state from records, each in O(1), in plain dicts until `state` is called."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._offsets: dict[str, dict[PartitionKey, CommittedOffset]] = {}
        self._offset_counts: dict[str, dict[str, int]] = {}
        self._pending = PendingOffsets.empty()

    def _keep_pending(self, entry: TransactionalRecord) -> None:
        group_id, topic, partition, committed = entry.record
        assert committed is not None, entry
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id)
        self._pending = self._pending.with_offset(entry.producer_id, group_id, (topic, partition), committed)

    def supersede(self, record: OffsetRecord) -> None:
        """An offset later than all pending ones of its partition counts."""
        self._pending = self._pending.superseded(record.group_id, (record.topic, record.partition))

    def _end_transaction(self, producer_id: int, *, commit: bool) -> None:
        self._pending, counting = self._pending.ended(producer_id, commit=commit)
        for group_id, place, committed in counting:
            self._set_offset(group_id, place, committed)

    def _set_offset(self, group_id: str, place: PartitionKey, committed: CommittedOffset) -> None:
        offsets = self._offsets.setdefault(group_id, {})
        if place not in offsets:
            groups = self._offset_counts.setdefault(place[0], {})
            groups[group_id] = groups.get(group_id, 0) + 1
        offsets[place] = committed

    def apply(self, entry: Entry) -> None:
        """Take in one record or marker; later records win over earlier ones of the same key."""
        if isinstance(entry, TransactionalRecord):
            self._keep_pending(entry)
        elif isinstance(entry, TransactionEnd):
            self._end_transaction(entry.marker.producer_id, commit=entry.marker.commit)
        elif isinstance(entry, OffsetRecord):
            self._apply_offset(entry)
        else:
            self._apply_record(entry)

    def _apply_offset(self, record: OffsetRecord) -> None:
        if self._pending.by_group:
            self._overtake_pending(record)
        group_id, topic, partition, committed = record
        if committed is None:
            self._forget_offset(group_id, (topic, partition))
            return
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id)
        self._set_offset(group_id, (topic, partition), committed)

    def _apply_record(self, record: Record) -> None:
        group_id = group_of(record.key)
        group = after(self._groups.get(group_id), record)
        if group is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = group

    def _overtake_pending(self, record: OffsetRecord) -> None:
        if record.committed is None:
            self._pending = self._pending.without_place(record.group_id, (record.topic, record.partition))
        else:
            self.supersede(record)

    def _forget_offset(self, group_id: str, place: PartitionKey) -> None:
        offsets = self._offsets.get(group_id, {})
        if offsets.pop(place, None) is None:
            return
        if not offsets:
            del self._offsets[group_id]
        groups = self._offset_counts[place[0]]
        groups[group_id] -= 1
        if not groups[group_id]:
            del groups[group_id]
        if not groups:
            del self._offset_counts[place[0]]

    def state(self) -> Groups:
        """The state so far, which owns the dicts from now on: nothing may be applied after this."""
        offsets = {group_id: VersionedMap.owning(offsets) for group_id, offsets in self._offsets.items()}
        consumer_group_ids = {
            group_id: True for group_id, group in self._groups.items() if not isinstance(group, ClassicGroup)
        }
        return Groups(
            VersionedMap.owning(self._groups),
            VersionedMap.owning(offsets),
            VersionedMap.owning({topic: VersionedMap.owning(g) for topic, g in self._offset_counts.items()}),
            VersionedMap.owning(consumer_group_ids),
            self._pending,
        )


def group_of(key: Any) -> str:
    """The group that a record of a group, not of an offset, is about."""
    group_id: str = key.group if isinstance(key, GroupMetadataKey) else key.group_id
    return group_id


def after(group: Group | None, record: Record) -> Group | None:
    """The group after `record`; None stands for no group.

    A simple group only stores offsets. A group of another kind replaces it, since offsets may be read before
    their group. Otherwise records of another kind than the group's are ignored.
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
    of_kind, apply = BY_KEY[type(key)]
    changed: Group | None = apply(group, record) if group is None or isinstance(group, of_kind) else group
    return changed


def replay(entries: Iterable[Entry]) -> Groups:
    """The durable state that records and markers lead to."""
    fold = Replay()
    for entry in entries:
        fold.apply(entry)
    return fold.state()
