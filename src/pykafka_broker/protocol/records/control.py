"""Control records: records written by brokers, in batches with the control bit.

    key    i16 version (0) | i16 type
    value  of a transaction marker: i16 version (0) | i32 coordinator epoch
           of the Raft types: the message of protocol/messages/records/control.py in schema version 0,
           whose first field repeats the version

Readers skip types that they do not know; keys and values of newer versions are read as version 0, as Kafka
prescribes (later versions may only add fields at the end).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.records.batch import NO_LEADER_EPOCH, BatchFields, build_batch
from pykafka_broker.protocol.records.errors import InvalidRecord
from pykafka_broker.system.named_tuple import NamedTuple

_KEY = Struct(">hh")
_MARKER = Struct(">hi")
CURRENT_VERSION = 0


class ControlRecordType(IntEnum):
    """The second number in the key of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    commit: bool
    coordinator_epoch: int


def encode_key(record_type: ControlRecordType) -> bytes:
    return _KEY.pack(CURRENT_VERSION, record_type)


def decode_key(key: bytes | None) -> ControlRecordType | None:
    """The type in a control record's key; None if unknown."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(f"The key of a control record takes {_KEY.size} bytes, not {len(key or b'')}")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"Invalid version found for control record: {version}")
    try:
        return ControlRecordType(number)
    except ValueError:
        return None


# --- transaction markers --------------------------------------------------------------------------


def encode_marker(marker: EndTransactionMarker) -> tuple[bytes, bytes]:
    """Key and value of the record."""
    record_type = ControlRecordType.COMMIT if marker.commit else ControlRecordType.ABORT
    return encode_key(record_type), _MARKER.pack(CURRENT_VERSION, marker.coordinator_epoch)


def decode_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker | None:
    """The marker in a control record; None for another type."""
    record_type = decode_key(key)
    if record_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    if value is None or len(value) < _MARKER.size:
        raise InvalidRecord(f"An end transaction marker takes {_MARKER.size} bytes, not {len(value or b'')}")
    version, coordinator_epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"Invalid version found for end transaction marker: {version}")
    return EndTransactionMarker(record_type is ControlRecordType.COMMIT, coordinator_epoch)


def build_marker_batch(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The batch of one record that ends a transaction; it has no sequence number."""
    return build_batch(
        [(timestamp_ms, *encode_marker(marker), ())],
        BatchFields(
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=True,
            control=True,
        ),
    )


# --- Raft -----------------------------------------------------------------------------------------


def encode_raft_record(message: object) -> tuple[bytes, bytes]:
    """Key and value of the control record with a message of protocol/messages/records/control.py."""
    from pykafka_broker.protocol.compile import encode

    for record_type, cls in _raft_messages().items():
        if type(message) is cls:
            return encode_key(record_type), encode(message, CURRENT_VERSION)
    raise TypeError(f"{type(message).__name__} is not carried by control records")


def decode_raft_record(key: bytes | None, value: bytes | None) -> object | None:
    """The message in a control record of the Raft log; None for other or unknown types."""
    from pykafka_broker.protocol.compile import decode

    record_type = decode_key(key)
    cls = _raft_messages().get(record_type) if record_type is not None else None
    if cls is None:
        return None
    if value is None:
        raise InvalidRecord(f"The control record {cls.__name__} has no value")
    try:
        message: object = decode(cls, CURRENT_VERSION, value)[0]
    except ProtocolError as error:
        raise InvalidRecord(f"The control record {cls.__name__} is malformed: {error}") from None
    return message


def _raft_messages() -> dict[ControlRecordType, type]:
    from pykafka_broker.protocol.messages.records import control as messages

    return {
        ControlRecordType.LEADER_CHANGE: messages.LeaderChangeMessage,
        ControlRecordType.SNAPSHOT_HEADER: messages.SnapshotHeaderRecord,
        ControlRecordType.SNAPSHOT_FOOTER: messages.SnapshotFooterRecord,
        ControlRecordType.KRAFT_VERSION: messages.KRaftVersionRecord,
        ControlRecordType.KRAFT_VOTERS: messages.VotersRecord,
    }
