"""The batch headers of some segments, compared with the checkpoints, and searched for gaps of compaction.

Headers are read and trusted. Blocking; worker-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.system.named_tuple import NamedTuple

#: With fewer segments, whether a log is dense cannot be judged.
_SEGMENTS_OF_A_DENSE_LOG = 4


class Survey(NamedTuple):
    """The outcome of a survey."""

    #: The leader epochs of the checkpoint cannot be those of this log.
    contradicts_epochs: bool
    #: The greatest missing offset, between batches or inside one, that was not lost but removed by
    #: compaction; -1 if there is none.
    last_gap: int

    @property
    def has_gaps(self) -> bool:
        """Whether compaction has removed offsets anywhere."""
        return self.last_gap >= 0


def survey(segments: Iterable[Segment], epoch_of: Callable[[int], int]) -> Survey:
    """Compare the epochs of batches with the checkpoint's, and find the offsets that compaction left out.

    The checkpoint is wrong if several batches have other epochs than it gives them: no disk spoils the same
    field of two batches, so a single one among others is damaged. It is also wrong if the only batch has an
    older epoch; a newer one is damage, because the checkpoint is on disk before the batch.

    A jump of the offsets counts where the next batch agrees.
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

    Then the log was not compacted, and offsets that are missing behind `segment` were lost. Of the last of
    `segments` only the base offset counts. Reads headers; false if in doubt.
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
