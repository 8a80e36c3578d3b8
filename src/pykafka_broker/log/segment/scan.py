"""Scanning a segment's file: rebuild its indexes, find what is damaged, cut what is torn; say so in the log.

At start for what a crash may have torn; while running for a closed segment whose index or headers turn out to
lead nowhere, and for whatever was written before this process began and is read for the first time. The
judgement is `recovery.Scan`'s; this is what is done about it. Blocking; worker-safe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pykafka_broker.log.disk.files import Buffer
from pykafka_broker.log.segment.batch_walk import Scan, sound_end
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.records.batch import BatchHeader

logger = logging.getLogger(__name__)

#: Fewer segments tell nothing of whether a log is dense.
_SEGMENTS_OF_A_DENSE_LOG = 4
#: A reader of old records has this much checked ahead of him, so that most of his reads need no thread.
CHECK_BYTES = 1 << 20


def scan_segment(
    segment: Segment,
    partition_name: str,
    *,
    next_base_offset: int | None,
    epoch_of: Callable[[int], int],
    gaps_allowed: bool = False,
    reaches_next: bool = False,
    synced_end: int = 0,
    on_batch: Callable[[BatchHeader], object] = lambda header: None,
) -> int:
    """Read all of a segment that nobody else uses; where its offsets end.

    `next_base_offset` is where the segment behind begins. Without one the end may be torn, and is cut;
    before another segment it is damaged like any other place, and so it is where offsets below `synced_end`,
    which were on stable storage, are missing. With `reaches_next` so are offsets that are
    missing there without a trace: a power cut may take the end of a file that was not synced.
    """
    segment.indexes.reset()
    scan = Scan(
        segment.file.pread,
        segment.size,
        segment.base_offset,
        epoch_of=epoch_of,
        gaps_allowed=gaps_allowed,
        following_offset=next_base_offset,
    )
    for position, header in scan:
        size, last_offset = header.size_in_bytes, header.last_offset
        segment.indexes.note_batch(segment, position, size, last_offset, header.max_timestamp, last_offset)
        on_batch(header)
    damages, next_offset = scan.damages, scan.next_offset
    torn_bytes = segment.size - scan.valid_end
    is_short = reaches_next and next_base_offset is not None and scan.next_offset < next_base_offset
    if (torn_bytes or is_short) and next_base_offset is not None:
        damages = [*damages, scan.tail_damage(next_base_offset)]
    elif torn_bytes and next_base_offset is None and scan.next_offset < synced_end:
        damages = [*damages, scan.tail_damage(synced_end)]
        next_offset = synced_end
    elif torn_bytes:
        logger.warning(
            "%s: cut a torn tail of %d bytes at offset %d (segment %d, position %d)",
            partition_name,
            torn_bytes,
            scan.next_offset,
            segment.base_offset,
            scan.valid_end,
        )
        segment.size = scan.valid_end
        segment.file.truncate(scan.valid_end)
    trust = segment.trust
    if tuple(damages) != trust.damages:
        for damage in damages:
            _report(damage, segment, partition_name)
        trust.damages = tuple(damages)
        trust.save_damages()
    if next_base_offset is not None:
        segment.save_indexes(final=True)
        segment.release()
    trust.note_scanned(trust.damages)
    return next_offset


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


def check_batches(
    segment: Segment,
    start: int,
    end: int,
    *,
    epoch_of: Callable[[int], int],
    next_base_offset: int | None,
) -> bool:
    """Check batches from before this process: from the one at `start`, or an indexed one before it, up to
    `end`, or further, so that the next reader finds it done.

    False if anything is odd, in the log or in the index; `find_damages` tells what.
    """
    size = segment.trust.unverified_end
    entry = segment.index.entry_at_or_before(start)
    start, expected = 0, segment.base_offset
    if entry is not None:
        last_offset, start = entry
        first = next(segment.headers(start), None)
        if first is None or first[1].last_offset != last_offset:
            return False
        expected = first[1].base_offset
    end = min(max(end, start + CHECK_BYTES), size)
    if start >= end:
        return True
    file = segment.file

    def read(size: int, position: int) -> Buffer:
        cached = file.pread_cached(size, position)  # into a buffer that is used again
        return cached if cached is not None else file.pread(size, position)

    sound = sound_end(
        read,
        start,
        end,
        size,
        next_offset=expected,
        max_offset=segment.base_offset + MAX_RELATIVE_OFFSET,
        epoch_of=epoch_of,
        following_offset=next_base_offset,
    )
    if sound is None:
        return False
    segment.trust.note_verified(start, sound)
    return True


def find_damages(
    segment: Segment,
    partition_name: str,
    *,
    next_offset: int,
    epoch_of: Callable[[int], int],
    is_kept: bool,
) -> None:
    """Go through all that was in a segment before this process, while it is served, and fence off what is
    damaged; in memory alone if not `is_kept`.

    `next_offset` is the first one behind the segment.
    """
    size = segment.trust.unverified_end
    behind = next(segment.headers(size), None) if size < segment.size else None
    following_offset = next_offset if behind is None else behind[1].base_offset
    scan = Scan(
        segment.file.pread, size, segment.base_offset, epoch_of=epoch_of, following_offset=following_offset
    )
    for _ in scan:
        pass
    damages = scan.damages
    if scan.valid_end < size:
        damages = [*damages, scan.tail_damage(following_offset)]
    trust = segment.trust
    if tuple(damages) != trust.damages:
        for damage in damages:
            _report(damage, segment, partition_name)
        trust.damages = tuple(damages)
        if is_kept:
            trust.save_damages()
    trust.note_all_verified()


def _report(damage: Damage, segment: Segment, partition_name: str) -> None:
    logger.error(
        "%s: offsets %d to %d are damaged (segment %d, bytes %d to %d) and will not be served",
        partition_name,
        damage.first_offset,
        damage.next_offset - 1,
        segment.base_offset,
        damage.position,
        damage.end_position,
    )
