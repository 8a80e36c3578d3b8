"""The record of a committed offset, as the core knows it, and its bytes as Apache Kafka 4.3 writes them.

A value has version 4, or version 1 when the commit carried its own retention. Older versions are read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pykafka_broker.coordinator.groups.core.committed_offset import NO_EXPIRY, CommittedOffset
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.records.group import (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykafka_broker.system.named_tuple import NamedTuple

VALUE_VERSION = 4
#: The only version that has room for an expiry time; it has none for the leader epoch and the topic id.
VALUE_VERSION_WITH_EXPIRY = 1
#: Record types 0 and 1 have the same key.
KEY_TYPES: dict[int, type] = {0: LegacyOffsetCommitKey, 1: OffsetCommitKey}

#: Consumers commit the same partitions repeatedly: this many encoded keys are cached, if group and topic name
#: together have at most this many characters (clients may choose 32 KiB).
REMEMBERED_KEYS = 8_192
REMEMBERED_LENGTH = 512

_KEY_TYPE = (1).to_bytes(2)
_VERSION = VALUE_VERSION.to_bytes(2)
_VERSION_WITH_EXPIRY = VALUE_VERSION_WITH_EXPIRY.to_bytes(2)


class OffsetRecord(NamedTuple):
    """A committed offset, or its deletion (None)."""

    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset | None


def encode_offset_record(record: OffsetRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    group_id, topic, partition, committed = record
    if len(group_id) + len(topic) <= REMEMBERED_LENGTH:
        key = _remembered_key(group_id, topic, partition)
    else:
        key = _encode_key(group_id, topic, partition)
    return key, None if committed is None else _encode_value(committed)


def decode_offset_record(record_type: int, key: bytes, value: bytes | None) -> OffsetRecord | None:
    """The record in a log entry, or None if its value is of a version that is not known here.

    Raises:
        ProtocolError: the bytes do not match their type and version.

    """
    place: Any
    place, _ = decode(KEY_TYPES[record_type], 0, key, 2)
    if value is None:
        return OffsetRecord(place.group, place.topic, place.partition, None)
    version = int.from_bytes(value[:2])
    if version not in schema_of(OffsetCommitValue).versions:
        return None
    read, _ = decode(OffsetCommitValue, version, value, 2)
    committed = CommittedOffset(
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.expire_timestamp,
        read.topic_id,
    )
    return OffsetRecord(place.group, place.topic, place.partition, committed)


def _encode_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode(OffsetCommitKey(group=group_id, topic=topic, partition=partition), 0, before=_KEY_TYPE)


_remembered_key = lru_cache(maxsize=REMEMBERED_KEYS)(_encode_key)


def _encode_value(committed: CommittedOffset) -> bytes:
    offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id = committed
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
    if expire_timestamp_ms == NO_EXPIRY:
        return encode(value, VALUE_VERSION, _VERSION)
    return encode(value, VALUE_VERSION_WITH_EXPIRY, _VERSION_WITH_EXPIRY)
