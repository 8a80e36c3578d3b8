"""A record of the group coordinator and its bytes: which keys and values there are, of which types.

A key is a 16-bit record type and the key's fields, a value is a 16-bit version and the value's fields; a null
value deletes. Types that are not listed here, those of a newer broker, are skipped when a log is read.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.coordinator.groups.core.offset_record import (
    KEY_TYPES,
    OffsetRecord,
    decode_offset_record,
    encode_offset_record,
)
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.records import group as m
from pykafka_broker.system.named_tuple import NamedTuple

#: Key and value by type; those of offsets are in `offset_record.py`.
RECORD_TYPES: dict[int, tuple[type, type]] = {
    2: (m.GroupMetadataKey, m.GroupMetadataValue),
    3: (m.ConsumerGroupMetadataKey, m.ConsumerGroupMetadataValue),
    4: (m.ConsumerGroupPartitionMetadataKey, m.ConsumerGroupPartitionMetadataValue),
    5: (m.ConsumerGroupMemberMetadataKey, m.ConsumerGroupMemberMetadataValue),
    6: (m.ConsumerGroupTargetAssignmentMetadataKey, m.ConsumerGroupTargetAssignmentMetadataValue),
    7: (m.ConsumerGroupTargetAssignmentMemberKey, m.ConsumerGroupTargetAssignmentMemberValue),
    8: (m.ConsumerGroupCurrentMemberAssignmentKey, m.ConsumerGroupCurrentMemberAssignmentValue),
    10: (m.ShareGroupMemberMetadataKey, m.ShareGroupMemberMetadataValue),
    11: (m.ShareGroupMetadataKey, m.ShareGroupMetadataValue),
    12: (m.ShareGroupTargetAssignmentMetadataKey, m.ShareGroupTargetAssignmentMetadataValue),
    13: (m.ShareGroupTargetAssignmentMemberKey, m.ShareGroupTargetAssignmentMemberValue),
    14: (m.ShareGroupCurrentMemberAssignmentKey, m.ShareGroupCurrentMemberAssignmentValue),
    15: (m.ShareGroupStatePartitionMetadataKey, m.ShareGroupStatePartitionMetadataValue),
    16: (m.ConsumerGroupRegularExpressionKey, m.ConsumerGroupRegularExpressionValue),
    17: (m.StreamsGroupMetadataKey, m.StreamsGroupMetadataValue),
    19: (m.StreamsGroupMemberMetadataKey, m.StreamsGroupMemberMetadataValue),
    20: (m.StreamsGroupTargetAssignmentMetadataKey, m.StreamsGroupTargetAssignmentMetadataValue),
    21: (m.StreamsGroupTargetAssignmentMemberKey, m.StreamsGroupTargetAssignmentMemberValue),
    22: (m.StreamsGroupCurrentMemberAssignmentKey, m.StreamsGroupCurrentMemberAssignmentValue),
    23: (m.StreamsGroupTopologyKey, m.StreamsGroupTopologyValue),
}


#: The first two bytes of a key, and of a value.
_TYPES = {key: number.to_bytes(2) for number, (key, _) in RECORD_TYPES.items()}
_VERSIONS = tuple(version.to_bytes(2) for version in range(8))


class Record(NamedTuple):
    """A coordinator record: a key and, unless it deletes, a value to be written in `value_version`."""

    key: object
    value: object | None
    value_version: int = 0


AnyRecord = Union[Record, OffsetRecord]


def encode_record(record: AnyRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    if isinstance(record, OffsetRecord):
        return encode_offset_record(record)
    key = encode(record.key, 0, before=_TYPES[type(record.key)])
    version = record.value_version
    if record.value is None:
        return key, None
    return key, encode(record.value, version, before=_VERSIONS[version])


def decode_record(key: bytes, value: bytes | None) -> AnyRecord | None:
    """The record in a log entry, or None if it is of a type or a version that is not known here.

    Raises:
        ProtocolError: the bytes do not match their type and version.

    """
    record_type = int.from_bytes(key[:2])
    if record_type in KEY_TYPES:
        return decode_offset_record(record_type, key, value)
    if record_type not in RECORD_TYPES:
        return None
    key_class, value_class = RECORD_TYPES[record_type]
    record_key: object
    record_key, _ = decode(key_class, 0, key, 2)
    if value is None:
        return Record(record_key, None)
    version = int.from_bytes(value[:2])
    if version not in schema_of(value_class).versions:
        return None
    record_value: object
    record_value, _ = decode(value_class, version, value, 2)
    return Record(record_key, record_value, version)
