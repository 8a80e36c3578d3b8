"""A log as its readers see it: reads are planned here, and offsets found by time and by epoch.

Planning a read takes a few microseconds on the event loop and never waits for a disk; what a plan does then
is reading.py's. `ReadPlan.read` and the lookups by timestamp and epoch are worker-safe.

Figures in docstrings: a 2-core VM, CPython 3.11.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from pykafka_broker.log.disk.checkpoints import EpochEntry
from pykafka_broker.log.partition.read_plan import (
    FoundOffset,
    ReadPlan,
    ReadRequest,
    Span,
    aborted_in,
    end_of_read,
    nothing_at,
    refuse_damaged,
    search_max_timestamp,
    search_timestamp,
    segment_number,
    storage_error,
    unresolved_read,
)
from pykafka_broker.log.partition.state import Limit, LogState
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.log.segment.batch_walk import no_epoch_known
from pykafka_broker.log.segment.scan import (
    check_batches,
    find_damages,
    is_dense_but_for,
    scan_segment,
    survey,
)
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

#: As many segments before and behind one tell whether its log is dense.
_NEAR_SEGMENTS = 8


class ReadableLog(LogState):
    """The reading half of a log."""

    __slots__ = ("_end_at_last_release",)

    def __init__(self, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self._end_at_last_release = -1

    @property
    def was_compacted(self) -> bool:
        """Whether compaction is known to be, or to have been, at work here."""
        return self._config.is_compacted

    @property
    def noted_density(self) -> int | None:
        """From here on offsets are missing only where they were lost; None if that is not noted."""
        return None

    def plan_read(
        self, offset: int, max_bytes: int, *, limit: Limit = "high_watermark", minimum_one_batch: bool = True
    ) -> ReadPlan:
        """Decide what a fetch at `offset` returns; OFFSET_OUT_OF_RANGE outside [log start, log end].

        Without `minimum_one_batch`, a first batch of more than `max_bytes` gives an empty plan. 1 us among
        the newest batches, 6 us through the index; with the read, 1 MiB takes 20 us more than copying it.
        """
        limit_offset = self.limit_offset(limit)
        if offset >= limit_offset or offset < self.log_start_offset:
            if offset > self.log_end_offset or offset < self.log_start_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Received request for offset {offset} for partition {self.name}, but we only have log "
                    f"segments from offset {self.log_start_offset} to {self.log_end_offset}.",
                )
            return nothing_at(offset)
        segments = self.segments
        number = len(segments) - 1
        next_offset = self.log_end_offset
        if offset < self._active.base_offset:
            number = segment_number(segments, offset)
            next_offset = segments[number + 1].base_offset
        segment = segments[number]
        trust = segment.trust
        if trust.damages:
            refuse_damaged(segment, offset)

        segment.is_idle = False
        try:
            place = self._place(segment, offset, limit_offset, next_offset)
        except OSError as error:
            self._environment.open_failed(error)
            raise storage_error(error) from error
        request = ReadRequest(offset, max_bytes, limit_offset, minimum_one_batch)
        if place is None:
            return self._unresolved(segments[number:], request, limit)
        start, size, end = place
        if start >= end or (max_bytes < size and not minimum_one_batch):
            return nothing_at(offset)
        end = end_of_read(segment, start, max(max_bytes, size), end, in_thread=False)
        if start < trust.unverified_end and not trust.is_verified(start, end):
            return self._unresolved(segments[number:], request, limit)
        aborted = None
        if limit == "last_stable":
            upper_bound = segment.index.offset_at_or_after(end)
            upper_bound = next_offset if upper_bound is None else upper_bound
            aborted = self._aborted_later(segments[number:], offset, upper_bound)
        return ReadPlan(offset, end - start, Span(segment, segment.file, start, end), None, aborted)

    def _unresolved(self, segments: tuple[Segment, ...], request: ReadRequest, limit: Limit) -> ReadPlan:
        """The plan of a read whose place must be found, or whose batches must be checked, in a thread."""
        aborted = None
        if limit == "last_stable":
            aborted = self._aborted_later(segments, request.offset, request.limit_offset)
        return unresolved_read(segments, request, self._check_segment, self._check_old_batches, aborted)

    @staticmethod
    def _place(
        segment: Segment, offset: int, limit_offset: int, next_offset: int
    ) -> tuple[int, int, int] | None:
        """(start of the batch that holds `offset`, its size, end of what may be read); None if that is not
        known here.

        `next_offset` is where the segment ends. Only memory and page cache are asked.
        """
        start, size = segment.indexes.tail_batch(offset, segment.size)
        if start < 0 or segment.trust.damages:
            found = segment.locate_cached(offset)
            if found is None or found[1].base_offset > offset:
                return None
            start, header = found
            size = header.size_in_bytes
        end = segment.size
        if limit_offset < next_offset:
            end = segment.indexes.tail_batch(limit_offset, end)[0]
            if end < 0:
                found = segment.locate_cached(limit_offset)
                if found is None:
                    return None
                end = found[0]
        return start, size, end

    def _check_segment(self, segment: Segment, next_base_offset: int) -> bool:
        """Scan a closed segment whose files do not agree; False if that was done before. Worker thread."""
        if segment.trust.was_scanned or self.closed:
            return False
        reaches_next = self._is_short(segment, next_base_offset)
        # Compaction leaves such segments: nothing to alarm anybody with.
        level = logging.DEBUG if self.was_compacted and not reaches_next else logging.WARNING
        logger.log(
            level, "%s: segment %d does not hold what it should, scanning", self.name, segment.base_offset
        )
        copy = segment.copy_to_scan()
        scan_segment(
            copy,
            self.name,
            next_base_offset=next_base_offset,
            epoch_of=self._believed_epochs(segment),
            reaches_next=reaches_next,
        )
        segment.adopt(copy)
        return True

    def _check_old_batches(
        self, segment: Segment, next_base_offset: int | None, start: int, end: int
    ) -> None:
        """Check the batches between two positions; if anything is odd there, all of the segment, and its
        indexes. Worker thread.
        """
        epoch_of = self.epochs.epoch_for_offset
        if check_batches(segment, start, end, epoch_of=epoch_of, next_base_offset=next_base_offset):
            return
        if next_base_offset is None or not self._check_segment(segment, next_base_offset):
            self.check_again(segment)

    def check_again(self, segment: Segment) -> None:
        """Go through all that was in a segment before this process, and fence off what is damaged. Worker
        thread.
        """
        segments = self.segments
        ends = dict(zip(segments, segment_ends(segments, self.log_end_offset), strict=True))
        find_damages(
            segment,
            self.name,
            next_offset=ends.get(segment, self.log_end_offset),
            epoch_of=self._believed_epochs(segment),
            is_kept=segment in ends and not self.closed,  # retention may have been faster
        )

    def _is_short(self, segment: Segment, next_base_offset: int) -> bool:
        """Whether a segment must reach the next: the note says so and nothing around contradicts it, or
        nothing around looks as if compaction was ever here.
        """
        if next_base_offset <= segment.base_offset:
            return False
        segments = self.segments
        number = segment_number(segments, segment.base_offset)
        near = segments[max(0, number - _NEAR_SEGMENTS) : number + _NEAR_SEGMENTS]
        noted = self.noted_density
        if noted is not None:
            return next_base_offset > noted > survey(near, self.epochs.epoch_for_offset).last_gap
        return not self.was_compacted and is_dense_but_for(segment, near)

    def _believed_epochs(self, segment: Segment) -> Callable[[int], int]:
        """The epochs that the batches of a segment should have, unless it and its neighbours contradict."""
        number = segment_number(self.segments, segment.base_offset)
        near = self.segments[max(0, number - 1) : number + 2]
        if not survey(near, self.epochs.epoch_for_offset).contradicts_epochs:
            return self.epochs.epoch_for_offset
        logger.warning("%s: the leader epochs contradict segment %d", self.name, segment.base_offset)
        return no_epoch_known

    def _aborted_later(
        self, segments: tuple[Segment, ...], offset: int, upper_bound: int
    ) -> Callable[[], list[AbortedTxn]] | None:
        """What `ReadPlan.aborted_transactions` calls; most logs have none, and then nothing is kept."""
        if not any(segment.aborted.entries for segment in segments):
            return None
        return lambda: aborted_in(segments, offset, upper_bound)

    def available_bytes(self, offset: int, limit: Limit = "high_watermark") -> int:
        """About how many bytes a reader at `offset` could get; cheap, never waits, for `fetch.min.bytes`."""
        if offset >= self.limit_offset(limit) or offset < self.log_start_offset:
            return 0
        segments = self.segments
        number = segment_number(segments, offset)
        segment = segments[number]
        start = segment.indexes.tail_batch(offset, segment.size)[0]
        if start < 0:
            start = segment.index.position_before(offset) if segment.indexes.is_loaded else 0
        return sum([s.size for s in segments[number:]]) - start

    # --- lookups by time and epoch ----------------------------------------------------------------

    def search_timestamp(self, timestamp: int, limit: Limit = "log_end") -> Callable[[], FoundOffset | None]:
        """How to find the first record below `limit` with a timestamp >= `timestamp`: call it in a worker
        thread.

        The search sees the log as it is now, whatever is appended or deleted meanwhile.
        """
        return partial(
            search_timestamp,
            self.segments,
            timestamp,
            self.log_start_offset,
            self.limit_offset(limit),
            self._check_old_batches,
        )

    def search_max_timestamp(self) -> Callable[[], FoundOffset | None]:
        """How to find the first record that carries the log's greatest timestamp; as `search_timestamp`."""
        return partial(search_max_timestamp, self.segments, self._check_old_batches)

    def offset_for_timestamp(self, timestamp: int, limit: Limit = "high_watermark") -> FoundOffset | None:
        """`search_timestamp`, carried out at once. Worker-safe; reads files."""
        return self.search_timestamp(timestamp, limit)()

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """`search_max_timestamp`, carried out at once. Worker-safe; reads files."""
        return self.search_max_timestamp()()

    def end_offset_for_epoch(self, epoch: int) -> EpochEntry:
        """(largest known epoch <= `epoch`, where it ends); (-1, -1) if unknown. Worker-safe."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, -1 if unknown. Worker-safe."""
        return self.epochs.epoch_for_offset(offset)

    # --- descriptors and indexes given back -------------------------------------------------------

    def release_idle(self) -> None:
        """Give back descriptors and indexes of segments that nobody read, and wrote, since the last call."""
        for segment in self.segments[:-1]:
            if segment.is_idle:
                segment.release()
            segment.is_idle = True
        active = self._active
        if active.is_idle and self.log_end_offset == self._end_at_last_release:
            active.release_file()
        active.is_idle = True
        self._end_at_last_release = self.log_end_offset

    def release_files(self) -> None:
        """Give back every descriptor; each comes back when it is needed. Worker-safe."""
        for segment in self.segments:
            segment.release_file()
