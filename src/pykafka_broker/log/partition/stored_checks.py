"""Checks of the batches that were in a log before this process: they are trusted only after a look.

A read that meets such batches has them checked first, in a worker thread. Where they are odd, or a closed
segment does not reach its neighbour, the whole segment is scanned, and the damaged ranges are fenced off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.read_plan import segment_number
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.segment.batch_scan import no_epoch_known
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.log.segment.segment_scan import fence_damages, scan_segment, verify_batches
from pykafka_broker.log.segment.survey import is_dense_but_for, survey

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")

#: How many segments before and after one show whether its log is dense.
_NEAR_SEGMENTS = 8


class StoredChecks:
    """The checks of one log. Worker threads."""

    __slots__ = ("_density", "_state")

    def __init__(self, state: LogState, density: Density) -> None:
        self._state = state
        self._density = density

    def check_segment(self, segment: Segment, next_base_offset: int) -> bool:
        """Scan a closed segment whose files do not agree; False if that was done before."""
        state = self._state
        if segment.trust.was_scanned or state.closed:
            return False
        reaches_next = self._is_short(segment, next_base_offset)
        # Compaction leaves such segments: no cause for alarm.
        level = logging.DEBUG if state.was_compacted and not reaches_next else logging.WARNING
        logger.log(
            level, "%s: segment %d does not hold what it should, scanning", state.name, segment.base_offset
        )
        copy = segment.copy_to_scan()
        scan_segment(
            copy,
            state.name,
            next_base_offset=next_base_offset,
            epoch_of=self._believed_epochs(segment),
            reaches_next=reaches_next,
        )
        segment.adopt(copy)
        return True

    def check_old_batches(self, segment: Segment, next_base_offset: int | None, start: int, end: int) -> None:
        """Check the batches between two positions; if anything is odd there, all of the segment, and its
        indexes.
        """
        epoch_of = self._state.epochs.epoch_for_offset
        if verify_batches(segment, start, end, epoch_of=epoch_of, next_base_offset=next_base_offset):
            return
        if next_base_offset is None or not self.check_segment(segment, next_base_offset):
            self.check_again(segment)

    def check_again(self, segment: Segment) -> None:
        """Check every batch that was in a segment before this process started, and fence off damaged ones."""
        state = self._state
        segments = state.segments
        ends = dict(zip(segments, segment_ends(segments, state.log_end_offset), strict=True))
        fence_damages(
            segment,
            state.name,
            next_offset=ends.get(segment, state.log_end_offset),
            epoch_of=self._believed_epochs(segment),
            is_kept=segment in ends and not state.closed,  # retention may have been faster
        )

    def _is_short(self, segment: Segment, next_base_offset: int) -> bool:
        """Whether a segment must reach the next: the note says so and no neighbour contradicts it; or,
        without a note, no neighbour looks compacted.
        """
        if next_base_offset <= segment.base_offset:
            return False
        segments, epoch_of = self._state.segments, self._state.epochs.epoch_for_offset
        number = segment_number(segments, segment.base_offset)
        near = segments[max(0, number - _NEAR_SEGMENTS) : number + _NEAR_SEGMENTS]
        dense_from = self._density.dense_from
        if dense_from is not None:
            return next_base_offset > dense_from > survey(near, epoch_of).last_gap
        return not self._state.was_compacted and is_dense_but_for(segment, near)

    def _believed_epochs(self, segment: Segment) -> Callable[[int], int]:
        """The epochs that the batches of a segment should have, unless it and its neighbours contradict."""
        segments, epoch_of = self._state.segments, self._state.epochs.epoch_for_offset
        number = segment_number(segments, segment.base_offset)
        if not survey(segments[max(0, number - 1) : number + 2], epoch_of).contradicts_epochs:
            return epoch_of
        logger.warning("%s: the leader epochs contradict segment %d", self._state.name, segment.base_offset)
        return no_epoch_known
