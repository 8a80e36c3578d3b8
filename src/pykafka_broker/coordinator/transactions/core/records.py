"""The durable facts of the transaction coordinator: one record per transactional id, and how they rebuild it.

Schemas and versions are those Apache Kafka 4.3 writes into `__transaction_state`: TransactionLogValue version
1 if transaction.version 1 or later is finalised, else version 0, which lacks the previous and the next
producer id and the client's version. A null value forgets the id. Records of other types or versions, of a
newer broker, are skipped.

Kafka writes partitions in the order of its hash tables; here they are sorted. No reader depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from pykafka_broker.coordinator.transactions.core.state import (
    FLEXIBLE_RECORDS,
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.records.txn import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from pykafka_broker.protocol.topic_partition import TopicPartition, by_topic
from pykafka_broker.system.named_tuple import NamedTuple

TRANSACTION_LOG_TYPE = 0
KEY_VERSION = 0


class Record(NamedTuple):
    """The metadata of a transactional id from now on; None: it is forgotten."""

    transactional_id: str
    metadata: Union[TransactionMetadata, None]
    value_version: int = 0


def metadata_record(metadata: TransactionMetadata, transaction_version: int) -> Record:
    """The record of a transactional id at the finalised level of the feature."""
    return Record(metadata.transactional_id, metadata, min(transaction_version, FLEXIBLE_RECORDS))


def tombstone(transactional_id: str) -> Record:
    """The tombstone of a transactional id."""
    return Record(transactional_id, None)


# ---- bytes ----


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    key = encode(
        TransactionLogKey(transactional_id=record.transactional_id),
        KEY_VERSION,
        before=TRANSACTION_LOG_TYPE.to_bytes(2),
    )
    metadata = record.metadata
    if metadata is None:
        return key, None
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=(
            None
            if metadata.state is TransactionState.EMPTY
            else [
                PartitionsSchema(topic=topic, partition_ids=indexes)
                for topic, indexes in by_topic(sorted(metadata.partitions)).items()
            ]
        ),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if record.value_version >= FLEXIBLE_RECORDS:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_transaction_version
    return key, encode(value, record.value_version, before=record.value_version.to_bytes(2))


def decode_record(key: bytes, value: bytes | None) -> Record | None:
    """The record in a log entry, or None if it is of a type or a version that is not known here.

    Raises:
        ProtocolError: the bytes do not match their type and version.

    """
    if int.from_bytes(key[:2]) != TRANSACTION_LOG_TYPE:
        return None
    found, _ = decode(TransactionLogKey, KEY_VERSION, key, 2)
    if value is None:
        return tombstone(found.transactional_id)
    version = int.from_bytes(value[:2])
    if version not in schema_of(TransactionLogValue).versions:
        return None
    fields, _ = decode(TransactionLogValue, version, value, 2)
    metadata = TransactionMetadata(
        found.transactional_id,
        producer_id=fields.producer_id,
        timeout_ms=fields.transaction_timeout_ms,
        last_update_ms=fields.transaction_last_update_timestamp_ms,
        previous_producer_id=fields.previous_producer_id,
        next_producer_id=fields.next_producer_id,
        producer_epoch=fields.producer_epoch,
        state=TransactionState(fields.transaction_status),
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in fields.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=fields.transaction_start_timestamp_ms,
        client_transaction_version=fields.client_transaction_version,
    )
    return Record(found.transactional_id, metadata, version)


# ---- replay ----


def replay(records: Iterable[Record]) -> Transactions:
    """The durable state that `records` lead to; later records win over earlier ones of the same id."""
    by_id: dict[str, TransactionMetadata] = {}
    for record in records:
        if record.metadata is None:
            by_id.pop(record.transactional_id, None)
        else:
            by_id[record.transactional_id] = record.metadata
    return Transactions(VersionedMap.owning(by_id))
