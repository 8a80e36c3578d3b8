"""A planned read: the event loop finds the position of the bytes, and reads them there or in a worker thread.

`LogReader.plan_read` makes a plan in a few microseconds from the state in memory. `answer_cached` then
answers from the page cache without ever waiting; if it cannot, `answer` reads in a worker thread. Both leave
larger reads in their file until they are sent (`stored_records.py`). `read` gives the bytes. A plan keeps its
segment's file open: retention or deletion between plan and read change nothing for it.

A plan for a segment whose index is not in memory is *unresolved*: its `size_bytes` is an upper bound and
`read` finds the place first. Kafka's rules for the bytes returned: from the start of the batch that holds the
offset, from one segment only, up to `max_bytes` but at least one batch if asked, never past the limit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Union

from pykafka_broker.log.disk.files import File
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.log.segment.stored_records import LEAST_BYTES, StoredRecords, read_through
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchHeader, read_records
from pykafka_broker.system.named_tuple import NamedTuple

#: Checks the batches of a segment (given the next base offset) between two positions; after that the damages
#: of the segment are known.
CheckOld = Callable[[Segment, Union[int, None], int, int], None]


class Span(NamedTuple):
    """The bytes [start, end) of a segment's file."""

    segment: Segment
    file: File
    start: int
    end: int


class ReadPlan:
    """The bytes that one fetch of one partition will return."""

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
        #: The bytes that `read` returns; an upper bound while the plan is unresolved; 0 if there are none.
        self.size_bytes = size_bytes
        self._span = span
        self._resolve = resolve
        self._aborted = aborted

    @property
    def segment_base_offset(self) -> int | None:
        """The segment that is read, by its base offset; None while the plan is unresolved or empty."""
        return None if self._span is None else self._span.segment.base_offset

    def answer_cached(self, read_cold: RunBlocking) -> Buffer | StoredRecords | None:
        """The records to answer with if the page cache has them; else None: use `answer` in a worker thread.

        Never waits. Of a larger read it looks up the first and the last byte; `read_cold` reads uncached ones
        later.
        """
        span = self._span
        if span is None:
            return None if self._resolve is not None else b""
        segment, file, start, end = span
        if end - start < LEAST_BYTES:
            return file.pread_cached(end - start, start)
        if (
            segment.trust.read_failed
            or file.pread_cached(1, start) is None
            or file.pread_cached(1, end - 1) is None
        ):
            return None
        return StoredRecords(segment, file, start, end, read_cold)

    def answer(self, read_cold: RunBlocking) -> Buffer | StoredRecords:
        """The records to answer with. Worker-safe; may wait for the disk. KAFKA_STORAGE_ERROR if it fails."""
        try:
            span = self._resolved()
            if span is None:
                return b""
            segment, file, start, end = span
            if end - start < LEAST_BYTES:
                return file.pread(end - start, start)
            read_through(segment, file, start, end)
            return StoredRecords(segment, file, start, end, read_cold)
        except OSError as error:
            raise storage_error(error) from error

    def read(self) -> bytes:
        """The bytes. Worker-safe; may wait for the disk. KAFKA_STORAGE_ERROR if it fails."""
        try:
            span = self._resolved()
            return b"" if span is None else span.file.pread(span.end - span.start, span.start)
        except OSError as error:
            raise storage_error(error) from error

    def read_cached(self) -> Buffer | None:
        """The bytes, if their place is known and the page cache has them all. Never waits."""
        span = self._span
        if span is None:
            return None if self._resolve is not None else b""
        return span.file.pread_cached(span.end - span.start, span.start)

    def _resolved(self) -> Span | None:
        return self._span if self._resolve is None else self._resolve()

    def aborted_transactions(self) -> list[AbortedTxn]:
        """Aborted transactions that touch the bytes, for read_committed; sorted by first offset, as old
        clients need (Apache Kafka sorts by marker).
        """
        return self._aborted() if self._aborted is not None else []


def storage_error(error: OSError) -> KafkaError:
    """The answer to a reader when the disk does not give its data."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Error while reading: {error.strerror or error}")


def nothing_at(offset: int) -> ReadPlan:
    """The plan of a fetch that finds nothing to return."""
    return ReadPlan(offset, 0, None)


def end_of_read(
    segment: Segment, start: int, bytes_wanted: int, limit_position: int, *, in_thread: bool
) -> int:
    """The end position of a read of `bytes_wanted` from `start`: a batch boundary if one is known, else
    `start + bytes_wanted`.

    The sparse index knows a boundary every few KiB. A shorter read may end inside a batch, as in Kafka. Only
    the event loop may use the exact positions of the newest batches.
    """
    end = start + bytes_wanted
    if end >= limit_position:
        return limit_position
    boundary = segment.index.last_start_at_or_before(end)
    if not in_thread:
        boundary = max(boundary, segment.indexes.tail_start_at_or_before(end))
    return boundary if boundary > start else end


def aborted_in(segments: Sequence[Segment], fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
    """Aborted transactions with a record at or past `fetch_offset` that started below `upper_bound_offset`.

    Entries are ordered by marker; once the last stable offset of one is past the upper bound, no later one
    started below it.
    """
    found: list[AbortedTxn] = []
    for segment in segments:
        for txn in segment.aborted.entries:
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound_offset:
                return sorted(found, key=_first_offset)
    return sorted(found, key=_first_offset)


def _first_offset(txn: AbortedTxn) -> int:
    return txn.first_offset


class ReadRequest(NamedTuple):
    """The arguments of one read."""

    offset: int
    max_bytes: int
    limit_offset: int
    minimum_one_batch: bool


def unresolved_read(
    segments: tuple[Segment, ...],
    request: ReadRequest,
    check: Callable[[Segment, int], bool],
    check_old: CheckOld,
    aborted: Callable[[], list[AbortedTxn]] | None,
) -> ReadPlan:
    """A plan that finds its place in a worker thread: the first of `segments` with a batch past the offset.

    `check` scans a closed segment (up to the given base offset of the next) that lacks the expected batch;
    False if that was done before.
    """

    def resolve() -> Span | None:
        offset = request.offset
        for segment, following in zip(segments, (*segments[1:], None), strict=True):
            found = segment.locate(offset)
            if (
                following is not None
                and segment.base_offset <= offset < following.base_offset
                and (found is None or found[1].base_offset > offset)
                and check(segment, following.base_offset)
            ):
                refuse_damaged(segment, offset)
                found = segment.locate(offset)
            if segment.trust.unverified_end:
                start = segment.index.position_before(offset)
                end = segment.trust.unverified_end
                if found is not None:
                    end = found[0] + max(request.max_bytes, found[1].size_in_bytes)
                if not segment.trust.is_verified(start, end):
                    check_old(segment, None if following is None else following.base_offset, start, end)
                    refuse_damaged(segment, offset)
                    found = segment.locate(offset)
            end_offset = request.limit_offset if found is None else found[1].base_offset
            refuse_damaged_between(segment, offset, min(end_offset, request.limit_offset))
            if found is not None:
                return _span(segment, following, found, request)
        return None  # compaction left nothing past the offset

    bytes_left = sum([segment.size for segment in segments])
    return ReadPlan(request.offset, min(request.max_bytes, bytes_left), None, resolve, aborted)


def _span(
    segment: Segment, following: Segment | None, found: tuple[int, BatchHeader], request: ReadRequest
) -> Span | None:
    """The bytes of `segment` to read, beginning with the batch that was found; None if none may be read."""
    start, header = found
    end = segment.size
    if following is None or request.limit_offset < following.base_offset:
        limit = segment.locate(request.limit_offset)
        end = end if limit is None else limit[0]
    for damage in segment.trust.damages:
        if damage.position >= start:
            end = min(end, damage.position)
    size = header.size_in_bytes
    if start >= end or (request.max_bytes < size and not request.minimum_one_batch):
        return None
    end = end_of_read(segment, start, max(request.max_bytes, size), end, in_thread=True)
    return Span(segment, segment.file, start, end)


def refuse_damaged(segment: Segment, offset: int) -> None:
    """Raise CORRUPT_MESSAGE for an offset that is in a damaged range."""
    for damage in segment.trust.damages:
        if damage.first_offset <= offset < damage.next_offset:
            raise _damaged(damage)


def refuse_damaged_between(segment: Segment, offset: int, end_offset: int) -> None:
    """Raise CORRUPT_MESSAGE if a read from `offset` to `end_offset` would skip a damaged range."""
    for damage in segment.trust.damages:
        if max(offset, damage.first_offset) < min(damage.next_offset, end_offset):
            raise _damaged(damage)


def _damaged(damage: Damage) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"The log is damaged from offset {damage.first_offset} to {damage.next_offset - 1}",
    )


def segment_number(segments: Sequence[Segment], offset: int) -> int:
    """Index of the segment that holds `offset`."""
    return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


# --- searches by time -----------------------------------------------------------------------------


class FoundOffset(NamedTuple):
    """The answer to a search by timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


def search_timestamp(
    segments: Sequence[Segment], timestamp: int, start_offset: int, end_offset: int, check_old: CheckOld
) -> FoundOffset | None:
    """The first record in [start_offset, end_offset) with a timestamp >= `timestamp`, of those in sound
    batches. Worker-safe; may wait.
    """
    for segment, next_base_offset in zip(segments, _next_base_offsets(segments), strict=True):
        if segment.base_offset >= end_offset:
            break
        if segment.max_timestamp < timestamp:
            continue
        first = start_offset
        entry = segment.time_index.entry_before(timestamp)
        if entry is not None and segment.carries(*entry):  # else from the beginning: it may come too late
            first = max(first, entry[1])
        for position, header in _checked_headers(segment, next_base_offset, first, check_old):
            if header.base_offset >= end_offset:
                return None
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            for record in read_records(segment.file.pread(header.size_in_bytes, position)):
                if record.timestamp >= timestamp and start_offset <= record.offset:
                    if record.offset >= end_offset:
                        return None
                    return FoundOffset(record.offset, record.timestamp, header.partition_leader_epoch)
    return None


def _checked_headers(
    segment: Segment, next_base_offset: int | None, offset: int, check_old: CheckOld
) -> Iterator[tuple[int, BatchHeader]]:
    """As `Segment.headers` from a batch at or before `offset` on, of sound batches."""
    start = segment.index.position_before(offset)
    is_checked = False
    while not is_checked:
        is_checked = True
        for position, header in segment.headers(start):
            if not segment.trust.is_verified(position, position + header.size_in_bytes):
                check_old(segment, next_base_offset, position, position + header.size_in_bytes)
                start, is_checked = position, False
                break  # this header was read before the check
            yield position, header


def _next_base_offsets(segments: Sequence[Segment]) -> list[int | None]:
    return [*[segment.base_offset for segment in segments[1:]], None]


def search_max_timestamp(segments: Sequence[Segment], check_old: CheckOld) -> FoundOffset | None:
    """The first record that carries the greatest timestamp, which is -1 if none has one; None if there are
    no records. Worker-safe; may wait.
    """
    newest, next_base_offset = max(
        zip(segments, _next_base_offsets(segments), strict=True), key=lambda pair: pair[0].max_timestamp
    )
    timestamp, offset = newest.max_timestamp, newest.offset_of_max_timestamp
    for position, header in _checked_headers(newest, next_base_offset, offset, check_old):
        if header.max_timestamp == timestamp:
            for record in read_records(newest.file.pread(header.size_in_bytes, position)):
                if record.timestamp == timestamp:
                    return FoundOffset(record.offset, timestamp, header.partition_leader_epoch)
    return None
