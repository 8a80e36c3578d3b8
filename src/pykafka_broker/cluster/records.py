"""Framing of metadata records: the value of a record of the metadata log.

value = uvarint frame version (1) | uvarint api key | uvarint version | the message, without trailing bytes

The version is chosen by the finalized metadata.version, so that every node of the cluster can read it.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.cluster.features import CORDONED_DIRECTORIES_SINCE, DIRECTORY_IDS_SINCE
from pykafka_broker.cluster.image import CorruptMetadataError
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.protocol.wire import uvarint

FRAME_VERSION = 1

#: Every record type of metadata.version 30.
RECORD_TYPES: tuple[type, ...] = (
    m.RegisterBrokerRecord,
    m.UnregisterBrokerRecord,
    m.TopicRecord,
    m.PartitionRecord,
    m.ConfigRecord,
    m.PartitionChangeRecord,
    m.FenceBrokerRecord,
    m.UnfenceBrokerRecord,
    m.RemoveTopicRecord,
    m.DelegationTokenRecord,
    m.UserScramCredentialRecord,
    m.FeatureLevelRecord,
    m.ClientQuotaRecord,
    m.ProducerIdsRecord,
    m.BrokerRegistrationChangeRecord,
    m.AccessControlEntryRecord,
    m.RemoveAccessControlEntryRecord,
    m.NoOpRecord,
    m.ZkMigrationStateRecord,
    m.RemoveUserScramCredentialRecord,
    m.BeginTransactionRecord,
    m.EndTransactionRecord,
    m.AbortTransactionRecord,
    m.RemoveDelegationTokenRecord,
    m.RegisterControllerRecord,
    m.ClearElrRecord,
)
_BY_API_KEY: dict[int, type] = {record_type.api_key: record_type for record_type in RECORD_TYPES}  # type: ignore[attr-defined]

#: The most records of one operation, and of one batch of the metadata log.
MAX_RECORDS_PER_OPERATION = 10_000


def encode_record(record: object, metadata_version: int) -> bytes:
    """The value of a metadata record, for readers at `metadata_version`."""
    api_key: int = record.api_key  # type: ignore[attr-defined]
    version = record_version(record, metadata_version)
    return bytes((FRAME_VERSION, api_key, version)) + encode(record, version)


def decode_record(value: bytes | memoryview | None) -> object:
    """The record framed in `value`; CorruptMetadataError if it is not a record of metadata.version 30."""
    if value is None:
        raise CorruptMetadataError("a metadata record has no value")
    record: object
    try:
        frame_version, at = uvarint(value, 0)
        api_key, at = uvarint(value, at)
        version, at = uvarint(value, at)
        if frame_version != FRAME_VERSION:
            raise CorruptMetadataError(f"metadata frame version {frame_version} is unknown")
        record_type = _BY_API_KEY.get(api_key)
        if record_type is None:
            raise CorruptMetadataError(f"metadata record type {api_key} is unknown")
        record, end = decode(record_type, version, value, at)
    except (ProtocolError, IndexError, ValueError) as error:
        raise CorruptMetadataError(f"a metadata record cannot be read: {error}") from error
    if end != len(value):
        raise CorruptMetadataError(f"{len(value) - end} bytes follow a {record_type.__name__}")
    return record


def _register_broker_version(_record: object, metadata_version: int) -> int:
    for version, since in ((4, CORDONED_DIRECTORIES_SINCE), (3, DIRECTORY_IDS_SINCE), (2, 8)):
        if metadata_version >= since:
            return version
    return 1


def _partition_version(_record: object, metadata_version: int) -> int:
    if metadata_version >= 23:
        return 2
    return 1 if metadata_version >= DIRECTORY_IDS_SINCE else 0


def _broker_change_version(record: m.BrokerRegistrationChangeRecord, _metadata_version: int) -> int:
    """The oldest version that has the fields of the record."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


#: Records with more than one version; all others have only version 0.
_VERSIONS: dict[type, Callable[..., int]] = {
    m.RegisterBrokerRecord: _register_broker_version,
    m.PartitionRecord: _partition_version,
    m.PartitionChangeRecord: _partition_version,
    m.BrokerRegistrationChangeRecord: _broker_change_version,
}


def record_version(record: object, metadata_version: int) -> int:
    """The schema version in which a record is written at a finalized metadata.version."""
    choose = _VERSIONS.get(type(record))
    return 0 if choose is None else choose(record, metadata_version)
