"""From rows in Arrow to record batches as they travel, and from these to transactions. Pure.

Rows come in the order of their offsets in the source. Rows before the position were written before and are
left out; a row that comes twice, as in at-least-once tables, is taken once.

A transaction is kept as a whole until it is committed, so that it can be sent again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.records.batch import BatchFields, Headers, build_batch
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.settings import Settings
from pykafka_broker.system.named_tuple import NamedTuple

#: The most bytes of a record's lengths, offset and time.
RECORD_OVERHEAD_BYTES = 40

#: Timestamp in milliseconds, key, value, headers: as `build_batch` takes it.
Record = tuple[int, bytes | None, bytes | None, Headers]


class Rows(NamedTuple):
    """Some rows of one partition; the times are Kafka's, in milliseconds."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    records: list[Record]
    #: The most bytes of each row in a batch.
    sizes: np.ndarray[Any, np.dtype[np.int64]]

    def taken(self, indices: np.ndarray[Any, Any]) -> Rows:
        """Only these rows."""
        records = self.records
        return Rows(self.offsets[indices], [records[i] for i in indices.tolist()], self.sizes[indices])


class Transaction(NamedTuple):
    """Batches that are committed together."""

    batches: tuple[bytes, ...]
    records: int
    size_bytes: int
    first_offset: int
    #: The position in the source after the transaction.
    next_offset: int


def rows_of(batch: pa.RecordBatch) -> Rows:
    """Rows with the columns `offset`, `timestamp_ms`, `key`, `value` and `headers`."""
    keys, values, headers = batch.column("key"), batch.column("value"), batch.column("headers")
    sizes = np.full(batch.num_rows, RECORD_OVERHEAD_BYTES, np.int64)
    sizes += _lengths(keys)
    sizes += _lengths(values)
    lists: list[Headers]
    if headers.null_count == len(headers):
        lists = [()] * len(headers)
    else:
        lists = [_headers(one) for one in headers.to_pylist()]
        sizes += np.fromiter((_headers_size(one) for one in lists), np.int64, len(lists))
    times = batch.column("timestamp_ms").to_numpy(zero_copy_only=False).tolist()
    records = list(zip(times, _values(keys), _values(values), lists, strict=True))
    return Rows(batch.column("offset").to_numpy(zero_copy_only=False), records, sizes)


def runs_of(batch: pa.RecordBatch, column: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows that follow each other and have the same number in a column."""
    numbers = batch.column(column).to_numpy(zero_copy_only=False)
    if not len(numbers):
        return
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, end in pairwise(starts):
        yield int(numbers[start]), batch.slice(start, end - start)


class Gathering:
    """Gathers the rows of one partition."""

    def __init__(self, settings: Settings, position: int) -> None:
        """Rows before the position are left out."""
        self.position = position
        self.duplicates = 0
        self.skipped = 0
        self._settings = settings
        self._fields = BatchFields(codec=settings.codec)
        self._last: tuple[int, Record] | None = None
        #: The records and the bytes of the batch that is being gathered.
        self._records: list[Record] = []
        self._records_bytes = 0
        #: Of the transaction that is being gathered.
        self._batches: list[bytes] = []
        self._batches_bytes = 0
        self._count = 0
        self._first_offset = -1

    def add(self, rows: Rows) -> Iterator[Transaction]:
        """The transactions that these rows complete.

        Raises:
            ReplayError: two different records have the same offset.
        """
        rows = self._without_known(rows)
        start, count = 0, len(rows.records)
        if not count:
            return
        ends = np.cumsum(rows.sizes)
        offsets, settings = rows.offsets, self._settings
        while start < count:
            before = int(ends[start - 1]) if start else 0
            room = settings.batch_bytes - self._records_bytes
            end = int(np.searchsorted(ends, before + room, side="right"))
            if end <= start and not self._records:
                end = start + 1
            end = min(end, start + settings.transaction_records - self._count)
            if end > start:
                if self._first_offset < 0:
                    self._first_offset = int(offsets[start])
                self._records += rows.records[start:end]
                self._records_bytes += int(ends[end - 1]) - before
                self._count += end - start
                self.position = int(offsets[end - 1]) + 1
            start = end
            is_full = self._count >= settings.transaction_records
            if start < count or is_full:
                self._close_batch()
                if is_full or self._batches_bytes + settings.batch_bytes > settings.transaction_bytes:
                    yield self._closed()

    def finish(self) -> Iterator[Transaction]:
        """The last transaction, if it has records."""
        if self._count:
            self._close_batch()
            yield self._closed()

    def _close_batch(self) -> None:
        if self._records:
            batch = build_batch(self._records, self._fields)
            self._batches.append(batch)
            self._batches_bytes += len(batch)
            self._records, self._records_bytes = [], 0

    def _closed(self) -> Transaction:
        transaction = Transaction(
            tuple(self._batches), self._count, self._batches_bytes, self._first_offset, self.position
        )
        self._batches, self._batches_bytes, self._count, self._first_offset = [], 0, 0, -1
        return transaction

    def _without_known(self, rows: Rows) -> Rows:
        """The rows that were not there before."""
        if not len(rows.records):
            return rows
        offsets = rows.offsets
        begins_before = self._last is not None and offsets[0] < self._last[0]
        if begins_before or np.any(np.diff(offsets) < 0):
            raise IllegalState("rows do not come in the order of their offsets")
        is_again = np.zeros(len(offsets), bool)
        is_again[1:] = offsets[1:] == offsets[:-1]
        is_again[0] = self._last is not None and offsets[0] == self._last[0]
        if is_again.any():
            self._check_same(rows, is_again)
        self._last = (int(offsets[-1]), rows.records[-1])
        is_known = is_again | (offsets < self.position)
        if not is_known.any():
            return rows
        self.duplicates += int(is_again.sum())
        self.skipped += int((is_known & ~is_again).sum())
        return rows.taken(np.flatnonzero(~is_known))

    def _check_same(self, rows: Rows, is_again: np.ndarray[Any, Any]) -> None:
        for index in np.flatnonzero(is_again).tolist():
            before = rows.records[index - 1] if index else self._last and self._last[1]
            if before != rows.records[index]:
                raise ReplayError(
                    f"Offset {rows.offsets[index]} occurs twice in the source, with different records: it "
                    "may be of a topic that was deleted and created anew."
                )


# -- Arrow
# --------


def _values(column: pa.Array) -> list[bytes | None]:
    """The values of a binary column. They are cut from its bytes, faster than `to_pylist`."""
    if column.type != pa.binary():
        found: list[bytes | None] = column.to_pylist()
        return found
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1].tolist()
    content = data.to_pybytes() if data is not None else b""
    values: list[bytes | None] = [content[a:b] for a, b in pairwise(bounds)]
    if column.null_count:
        for index in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[index] = None
    return values


def _lengths(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.binary_length(column), 0)
    array: np.ndarray[Any, np.dtype[np.int64]] = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return array


def _headers(headers: list[dict[str, Any]] | None) -> Headers:
    return tuple((one["key"], one["value"]) for one in headers) if headers else ()


def _headers_size(headers: Headers) -> int:
    return sum(4 * len(name) + len(value or b"") + 10 for name, value in headers)
