"""A planned read: where the bytes are, decided on the event loop; the bytes, fetched there or in a worker thread.

`PartitionLog.plan_read` makes a plan in a few microseconds from what is in memory. `read_cached` then answers from the
page cache without ever waiting, and when it cannot, `read` does in a worker thread. A plan keeps its segment's file
open: retention or deletion between plan and read change nothing for it.

A plan for a segment whose index is not in memory is *unresolved*: its `size_bytes` is an upper bound and `read` finds
the place first. Kafka's rules for what is returned: from the start of the batch that holds the offset, from one
segment only, up to `max_bytes` but at least one batch if asked, never past the limit.
"""

from __future__ import annotations

from typing import Callable, Sequence

from pykafka_broker.log.files import Buffer, File
from pykafka_broker.log.index import AbortedTxn
from pykafka_broker.log.segment import Segment

#: The bytes [start, end) of a file.
Span = tuple[File, int, int]


class ReadPlan:
    """What one fetch of one partition will return."""

    __slots__ = ("_aborted", "_resolve", "_span", "first_offset", "size_bytes")

    def __init__(
        self,
        first_offset: int,
        size_bytes: int,
        span: Span | None,
        resolve: Callable[[], Span | None] | None = None,
        aborted: Callable[[], list[AbortedTxn]] | None = None,
    ) -> None:
        #: The offset that was asked for; the bytes start with the batch that holds it.
        self.first_offset = first_offset
        #: How much `read` returns; an upper bound while the plan is unresolved; 0 = there is nothing to read.
        self.size_bytes = size_bytes
        self._span = span
        self._resolve = resolve
        self._aborted = aborted

    def read_cached(self) -> Buffer | None:
        """The bytes if the page cache has them, else None: then use `read` in a worker thread. Never waits."""
        span = self._span
        if span is None:
            return None if self._resolve is not None else b""
        file, start, end = span
        return file.pread_cached(end - start, start)

    def read(self) -> bytes:
        """The bytes. Worker-safe; may wait for the disk."""
        span = self._span
        if span is None and self._resolve is not None:
            span = self._resolve()
        if span is None:
            return b""
        file, start, end = span
        return file.pread(end - start, start)

    def aborted_transactions(self) -> list[AbortedTxn]:
        """Aborted transactions that touch the bytes, for read_committed; by first offset, as old clients need."""
        return self._aborted() if self._aborted is not None else []


def nothing_at(offset: int) -> ReadPlan:
    """The plan of a fetch that finds nothing to return."""
    return ReadPlan(offset, 0, None)


def end_of_read(
    segment: Segment, start: int, first_batch_bytes: int, max_bytes: int, limit_position: int
) -> int:
    """Where a read from `start` ends: at a batch boundary if one is known, as far as `max_bytes` and limit allow."""
    end = start + max(max_bytes, first_batch_bytes)
    if end >= limit_position:
        return limit_position
    boundary = max(segment.tail_start_at_or_before(end), segment.index.last_start_at_or_before(end))
    return max(boundary, start + first_batch_bytes)


def aborted_in(segments: Sequence[Segment], fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
    """Aborted transactions with a record at or past `fetch_offset` that started below `upper_bound_offset`.

    Entries are ordered by marker; once the last stable offset of one is past the upper bound, no later one started
    below it.
    """
    found: list[AbortedTxn] = []
    for segment in segments:
        for txn in segment.aborted_txns:
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound_offset:
                return sorted(found, key=_first_offset)
    return sorted(found, key=_first_offset)


def _first_offset(txn: AbortedTxn) -> int:
    return txn.first_offset
