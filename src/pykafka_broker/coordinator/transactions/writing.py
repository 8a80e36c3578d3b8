"""Writes the records of a transaction shard into its partition of `__transaction_state`."""

from __future__ import annotations

from pykafka_broker.coordinator.batches import CoordinatorLog, batches_of
from pykafka_broker.coordinator.transactions.core.records import Record, encode_record
from pykafka_broker.protocol.records.batch import build_batch


def write(log: CoordinatorLog, partition: int, records: tuple[object, ...], *, now_ms: int) -> int:
    """Append records as one batch, or large sets of tombstones as several; return the log end offset.

    Raises:
        KafkaError: any error of `log`.

    """
    encoded = [(now_ms, *encode_record(record), ()) for record in records if isinstance(record, Record)]
    end_offset = 0
    for each in batches_of(encoded, log.max_batch_bytes(partition)):
        end_offset = log.append(partition, build_batch(each))
    return end_offset
