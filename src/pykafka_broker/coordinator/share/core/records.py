"""The durable facts of the share coordinator: snapshots and updates, and how they rebuild the state.

Schemas and versions are those Apache Kafka 4.3 writes into `__share_group_state`. A snapshot has the whole
state of a share partition; a null one forgets it. An update changes the state: its batches are combined with
the known ones (`batches.py`), its start offset and leader epoch replace the old ones unless they are -1, its
count always does. As in Kafka the snapshot epoch of an update is ignored. Records of other types or versions,
of a newer broker, are skipped.

The topic is not compacted. Records before the newest snapshots are deleted from the start of the log
(`Shares.redundant_offset`); so the state also has the offsets of the snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from pykafka_broker.coordinator.share.core.batches import StateBatch, combined
from pykafka_broker.coordinator.share.core.state import (
    LOWEST_EPOCH,
    NO_EPOCH,
    NO_OFFSET,
    NO_START_OFFSET,
    ShareEntry,
    Shares,
    ShareState,
)
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.records import share as messages
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

SNAPSHOT_TYPE = 0
UPDATE_TYPE = 1
KEY_VERSION = 0
VALUE_VERSION = 0


class Snapshot(NamedTuple):
    """The state of a share partition from now on; None: it is forgotten."""

    key: SharePartitionKey
    state: Union[ShareState, None]


class Update(NamedTuple):
    """A change of the state of a share partition."""

    key: SharePartitionKey
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


Record = Union[Snapshot, Update]


# ---- bytes ----


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    group_id, topic_id, partition = record.key
    if isinstance(record, Update):
        key = messages.ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition)
        update = messages.ShareUpdateValue(
            snapshot_epoch=record.snapshot_epoch,
            leader_epoch=record.leader_epoch,
            start_offset=record.start_offset,
            delivery_complete_count=record.delivery_complete_count,
            state_batches=_encoded(record.batches),
        )
        return encode(key, KEY_VERSION, before=UPDATE_TYPE.to_bytes(2)), _value(update)
    snapshot_key = messages.ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    encoded_key = encode(snapshot_key, KEY_VERSION, before=SNAPSHOT_TYPE.to_bytes(2))
    state = record.state
    if state is None:
        return encoded_key, None
    snapshot = messages.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=_encoded(state.batches),
    )
    return encoded_key, _value(snapshot)


def _value(message: object) -> bytes:
    return encode(message, VALUE_VERSION, before=VALUE_VERSION.to_bytes(2))


def _encoded(batches: tuple[StateBatch, ...]) -> list[messages.StateBatch]:
    return [
        messages.StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    ]


def _decoded(batches: list[messages.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in batches
    )


def decode_record(key: bytes, value: bytes | None) -> Record | None:
    """The record in a log entry, or None if it is of a type or a version that is not known here.

    Raises:
        ProtocolError: the bytes do not match their type and version.

    """
    record_type = int.from_bytes(key[:2])
    if record_type == SNAPSHOT_TYPE:
        snapshot_key, _ = decode(messages.ShareSnapshotKey, KEY_VERSION, key, 2)
        named = SharePartitionKey(snapshot_key.group_id, snapshot_key.topic_id, snapshot_key.partition)
        return Snapshot(named, None) if value is None else _decoded_snapshot(named, value)
    if record_type == UPDATE_TYPE and value is not None:
        update_key, _ = decode(messages.ShareUpdateKey, KEY_VERSION, key, 2)
        named = SharePartitionKey(update_key.group_id, update_key.topic_id, update_key.partition)
        return _decoded_update(named, value)
    return None


def _decoded_snapshot(key: SharePartitionKey, value: bytes) -> Snapshot | None:
    version = int.from_bytes(value[:2])
    if version not in schema_of(messages.ShareSnapshotValue).versions:
        return None
    fields, _ = decode(messages.ShareSnapshotValue, version, value, 2)
    state = ShareState(
        snapshot_epoch=fields.snapshot_epoch,
        state_epoch=fields.state_epoch,
        leader_epoch=fields.leader_epoch,
        start_offset=fields.start_offset,
        delivery_complete_count=fields.delivery_complete_count,
        batches=_decoded(fields.state_batches),
        create_timestamp_ms=fields.create_timestamp,
        write_timestamp_ms=fields.write_timestamp,
    )
    return Snapshot(key, state)


def _decoded_update(key: SharePartitionKey, value: bytes) -> Update | None:
    version = int.from_bytes(value[:2])
    if version not in schema_of(messages.ShareUpdateValue).versions:
        return None
    fields, _ = decode(messages.ShareUpdateValue, version, value, 2)
    return Update(
        key,
        fields.snapshot_epoch,
        fields.leader_epoch,
        fields.start_offset,
        fields.delivery_complete_count,
        _decoded(fields.state_batches),
    )


# ---- replay ----


def applied(
    entry: ShareEntry | None, record: Record, offset: int, updates_per_snapshot: int
) -> ShareEntry | None:
    """A share partition after `record`, which is at `offset` of the log; None: it is forgotten."""
    if isinstance(record, Update):
        return _updated(entry, record)
    state = record.state
    if state is None:
        return None
    if entry is None:
        return ShareEntry(state, state.leader_epoch, state.state_epoch, snapshot_offset=offset)
    return ShareEntry(
        state,
        max(entry.highest_leader_epoch, state.leader_epoch),
        max(entry.highest_state_epoch, state.state_epoch),
        0 if entry.update_count >= updates_per_snapshot else entry.update_count,
        offset,
    )


def _updated(entry: ShareEntry | None, update: Update) -> ShareEntry:
    if entry is None:
        # Its snapshot is not in the log any more. Kafka also begins with the update then.
        state = ShareState(
            update.snapshot_epoch,
            0,
            update.leader_epoch,
            update.start_offset,
            update.delivery_complete_count,
            update.batches,
            0,
            0,
        )
        return ShareEntry(state, update.leader_epoch, LOWEST_EPOCH, 1, NO_OFFSET)
    before = entry.state
    start_offset = before.start_offset if update.start_offset == NO_START_OFFSET else update.start_offset
    state = before._replace(
        leader_epoch=before.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=combined(before.batches, update.batches, start_offset),
    )
    return entry._replace(
        state=state,
        highest_leader_epoch=max(entry.highest_leader_epoch, update.leader_epoch),
        update_count=entry.update_count + 1,
    )


class Replay:
    """Rebuilds the state of a shard from its records, in the order of the log."""

    def __init__(self, updates_per_snapshot: int) -> None:
        self._updates_per_snapshot = updates_per_snapshot
        self._by_key: dict[SharePartitionKey, ShareEntry] = {}
        self._deletion_offset = NO_OFFSET

    def add(self, record: Record, offset: int) -> None:
        """Take in the record at `offset`."""
        key = record.key
        entry = applied(self._by_key.get(key), record, offset, self._updates_per_snapshot)
        if entry is not None:
            self._by_key[key] = entry
            return
        self._by_key.pop(key, None)
        self._deletion_offset = offset

    def state(self) -> Shares:
        """The state that the records lead to. Nothing may be added after that."""
        return Shares(VersionedMap.owning(self._by_key), self._deletion_offset)


def replay(records: Iterable[tuple[int, Record]], updates_per_snapshot: int) -> Shares:
    """The durable state that records lead to, each with its offset in the log."""
    rebuilt = Replay(updates_per_snapshot)
    for offset, record in records:
        rebuilt.add(record, offset)
    return rebuilt.state()
