"""Writes the records of a group's shard into its partition of `__consumer_offsets`."""

from __future__ import annotations

from typing import Any

from pykafka_broker.coordinator.batches import CoordinatorLog, append_entries
from pykafka_broker.coordinator.groups.core.record import encode_record
from pykafka_broker.coordinator.groups.core.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.records.compression import Codec


def write(log: CoordinatorLog, partition: int, records: tuple[Any, ...], *, now_ms: int, codec: Codec) -> int:
    """Append records: a transaction's in one batch, a marker, or as `append_entries` does; return the log end
    offset. Raises KafkaError as `log` does.
    """
    first = records[0]
    if isinstance(first, TransactionEnd):
        marker = first.marker
        return log.append(partition, marker.batch(now_ms), transaction_version=marker.transaction_version)
    if isinstance(first, TransactionalRecord):
        batch = build_batch(
            [(now_ms, *encode_record(entry.record), ()) for entry in records],
            BatchFields(
                codec=codec,
                producer_id=first.producer_id,
                producer_epoch=first.producer_epoch,
                transactional=True,
            ),
        )
        return log.append(partition, batch, guard=first.guard)
    return append_entries(log, partition, [(now_ms, *encode_record(record), ()) for record in records], codec)
