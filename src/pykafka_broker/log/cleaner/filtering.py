"""One batch after compaction: pure, bytes in and bytes out.

A batch whose records are all kept is copied unchanged. Otherwise the bytes of the kept records are joined
into a new batch: base offset, last offset and sequence numbers stay the same, so a producer's next batch
still fits. When compaction first finds a tombstone in a batch, or a marker whose transaction is gone, the
batch gets a delete horizon: the attribute bit, and the time in place of the base timestamp (KIP-534).
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.log.cleaner.key_map import KeyMap
from pykafka_broker.log.cleaner.transactions import CleanedTransactions
from pykafka_broker.log.partition.cleaning_job import LastRecord
from pykafka_broker.protocol.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    as_int64,
    check_batch,
    record_bounds,
    record_bytes,
    walk_records,
    with_records,
    with_timestamp_delta,
)
from pykafka_broker.system.named_tuple import NamedTuple


class Rules(NamedTuple):
    """The rules of one round."""

    now_ms: int
    delete_retention_ms: int
    #: The round ends here; the last batch before it is kept, if need be without records.
    upper_bound_offset: int
    last_records: dict[int, LastRecord]


class Remains(NamedTuple):
    """A batch after compaction."""

    batch: memoryview | bytes
    max_timestamp: int


def remains(
    batch: memoryview, header: BatchHeader, keys: KeyMap, transactions: CleanedTransactions, rules: Rules
) -> Remains | None:
    """The part of `batch` that is kept, None if nothing is.

    Raises:
        CorruptRecord, InvalidRecord: the batch is damaged.
    """
    check_batch(batch)
    is_control = header.is_control
    may_go = transactions.on_control(header, batch) if is_control else transactions.on_data(header)
    if is_control and may_go:
        horizon = header.delete_horizon_ms
        goes = horizon is not None and horizon <= rules.now_ms
    else:
        goes = may_go
    keeps_header = header.next_offset == rules.upper_bound_offset or _is_last_of_producer(header, rules)
    if goes:
        return _empty(header) if keeps_header else None
    if header.records_count == 0:
        return _empty(header) if keeps_header else None
    needs_horizon = not header.has_delete_horizon
    if is_control and not (may_go and needs_horizon):
        return Remains(batch, header.max_timestamp)
    data = record_bytes(batch, header)
    if is_control:
        marker = {number: span[1] for number, span in enumerate(walk_records(data, header.records_count))}
        return _rebuilt(data, header, marker, rules.now_ms + rules.delete_retention_ms)
    kept, has_tombstone = _kept(data, header, keys, rules.now_ms)
    if not kept:
        return _empty(header) if keeps_header else None
    if has_tombstone and needs_horizon:
        return _rebuilt(data, header, kept, rules.now_ms + rules.delete_retention_ms)
    if len(kept) == header.records_count:
        return Remains(batch, header.max_timestamp)
    return _rebuilt(data, header, kept, header.delete_horizon_ms)


def _is_last_of_producer(header: BatchHeader, rules: Rules) -> bool:
    """Whether the batch is the last one of its producer: a restart reads the producer's state from it."""
    last = rules.last_records.get(header.producer_id) if header.producer_id >= 0 else None
    if last is None:
        return False
    if last.data_offset >= 0:
        return header.last_offset == last.data_offset
    return header.is_control and header.producer_epoch == last.producer_epoch


def _kept(data: bytes, header: BatchHeader, keys: KeyMap, now_ms: int) -> tuple[dict[int, int], bool]:
    """The timestamp deltas of the kept records by number, and whether there is a tombstone among them."""
    base_offset, latest = header.base_offset, keys.latest_offset
    horizon = header.delete_horizon_ms
    tombstones_stay = horizon is None or now_ms < horizon
    newest = keys.get
    kept: dict[int, int] = {}
    has_tombstone = False
    for number, span in enumerate(walk_records(data, header.records_count)):
        offset_delta, timestamp_delta, key_at, key_end, _, value_end, _ = span
        offset = base_offset + offset_delta
        if offset > latest or (
            key_end >= 0 and (value_end >= 0 or tombstones_stay) and offset >= newest(data[key_at:key_end])
        ):
            kept[number] = timestamp_delta
            if value_end < 0:
                has_tombstone = True
    return kept, has_tombstone


def _rebuilt(
    data: bytes, header: BatchHeader, kept: Mapping[int, int], delete_horizon_ms: int | None
) -> Remains:
    """A batch of the `kept` records; the bytes of a record are copied unless its timestamp delta changes."""
    append_time = header.max_timestamp if header.timestamp_type else None
    timestamps = [
        as_int64(header.base_timestamp + delta) if append_time is None else append_time
        for delta in kept.values()
    ]
    base_timestamp = timestamps[0] if delete_horizon_ms is None else delete_horizon_ms
    is_copy = append_time is None and base_timestamp == header.base_timestamp
    records = []
    left = iter(timestamps)
    for number, (start, rest_at, end) in enumerate(record_bounds(data, header.records_count)):
        if number in kept:
            timestamp = next(left)
            records.append(
                data[start:end]
                if is_copy
                else with_timestamp_delta(data, rest_at, end, as_int64(timestamp - base_timestamp))
            )
    max_timestamp = max(timestamps)
    batch = with_records(
        header,
        b"".join(records),
        len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        has_delete_horizon=delete_horizon_ms is not None,
    )
    return Remains(batch, max_timestamp)


def _empty(header: BatchHeader) -> Remains:
    """The batch without its records: its offsets, producer and sequence numbers are kept."""
    batch = with_records(header, b"", 0, base_timestamp=NO_TIMESTAMP, max_timestamp=header.max_timestamp)
    return Remains(batch, header.max_timestamp)
