"""What the batch headers of some segments say about the checkpoints, and about the work of compaction.

Headers are read and trusted. Blocking; worker-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pykafka_broker.log.segment.segment import Segment

#: Fewer segments tell nothing of whether a log is dense.
_SEGMENTS_OF_A_DENSE_LOG = 4


class Survey(NamedTuple):
    """What the headers of some segments say of what the checkpoints say."""

    #: The leader epochs of the checkpoint cannot be those of this log.
    contradicts_epochs: bool
    #: The greatest offset that is missing between batches or in them, and cannot be lost, so that compaction
    #: was at work here; -1 if none is.
    last_gap: int

    @property
    def has_gaps(self) -> bool:
        """Whether compaction was at work anywhere."""
        return self.last_gap >= 0


def survey(segments: Iterable[Segment], epoch_of: Callable[[int], int]) -> Survey:
    """Several batches that have other epochs than the checkpoint gives them, or the only one there is, if its
    is an older one, prove that wrong. No disk spoils the same field of two batches, so one among others is
    damaged; so is one of an epoch that is newer: the checkpoint is on disk before the batch.

    A jump of the offsets counts where the batch behind agrees.
    """
    seen = newer = batches = 0
    last_gap = -1
    for segment in segments:
        expected, jump = segment.base_offset, -1
        for _, header in segment.headers(0):
            batches += 1
            base_offset, last_offset = header.base_offset, header.last_offset
            epoch = epoch_of(base_offset)
            if epoch not in (header.partition_leader_epoch, -1):
                seen += 1
                newer += header.partition_leader_epoch > epoch
            if header.records_count <= header.last_offset_delta:
                last_gap = max(last_gap, last_offset)
            if jump >= 0 and base_offset >= expected:
                last_gap = max(last_gap, jump)
            jump, expected = base_offset - 1 if base_offset > expected else -1, last_offset + 1
    return Survey(seen > 1 or (seen == batches == 1 and not newer), last_gap)


def is_dense_but_for(segment: Segment, segments: Sequence[Segment]) -> bool:
    """Whether each of these closed segments, but `segment`, reaches up to the next, and no offsets are
    missing within any.

    Then compaction was not at work, and what is missing behind `segment` was lost. The last of `segments` is
    there for its base offset alone. Reads headers; false if in doubt.
    """
    if len(segments) < _SEGMENTS_OF_A_DENSE_LOG:
        return False
    for one, following in pairwise(segments):
        expected = one.base_offset
        for _, header in one.headers(0):
            if header.base_offset != expected or header.records_count != header.last_offset_delta + 1:
                return False
            expected = header.next_offset
        if expected != following.base_offset and one is not segment:
            return False
    return True
