"""Writes the records of a transaction shard into its partition of `__transaction_state`."""

from __future__ import annotations

from pykafka_broker.coordinator.batches import CoordinatorLog, append_entries
from pykafka_broker.coordinator.transactions.core.records import Record, encode_record


def write(log: CoordinatorLog, partition: int, records: tuple[object, ...], *, now_ms: int) -> int:
    """Append records as `append_entries` does; return the log end offset."""
    encoded = [(now_ms, *encode_record(record), ()) for record in records if isinstance(record, Record)]
    return append_entries(log, partition, encoded)
