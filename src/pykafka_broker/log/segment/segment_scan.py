"""Reading a segment's batches without trusting them, and acting on the findings.

* `scan_segment` rebuilds the indexes, fences off damage, and cuts a torn tail: at the start for segments that
  a crash may have torn, and while running for a closed segment whose index or headers lead nowhere.
* `verify_batches` checks bytes written before this process began, when they are read for the first time.
* `fence_damages` goes through a whole segment that is being read, where `verify_batches` found it odd.

How batches are judged: `batch_scan.py`. Blocking; worker-safe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pykafka_broker.log.segment.batch_scan import BatchScan, verified_end
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import BatchHeader

logger = logging.getLogger("org.apache.kafka.storage.internals.log.LogSegment")

#: The bytes verified ahead of a reader of old records, so that most of its reads need no thread.
VERIFY_BYTES = 1 << 20


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
    """Read all of a segment that is not in use; return its end offset.

    `next_base_offset` is the base offset of the next segment; the last segment has none, and its torn end is
    cut off. A bad end is damage instead if another segment follows, or if offsets below `synced_end`, which
    were on stable storage, are missing. With `reaches_next`, offsets missing at the end are damage even
    without bad bytes: a power cut may take the end of a file that was not synced.
    """
    segment.indexes.reset()
    scan = BatchScan(
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
    _note_damages(damages, segment, partition_name)
    if next_base_offset is not None:
        segment.save_indexes(final=True)
        segment.release()
    segment.trust.note_scanned(segment.trust.damages)
    return next_offset


def verify_batches(
    segment: Segment,
    start: int,
    end: int,
    *,
    epoch_of: Callable[[int], int],
    next_base_offset: int | None,
) -> bool:
    """Verify batches that were written before this process began: from the one at `start`, or an indexed one
    before it, up to `end` or further, for the next reader.

    False if anything is odd, in the log or in the index; `fence_damages` finds the fault.
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
    end = min(max(end, start + VERIFY_BYTES), size)
    if start >= end:
        return True
    file = segment.file

    def read(size: int, position: int) -> Buffer:
        cached = file.pread_cached(size, position)  # into a buffer that is used again
        return cached if cached is not None else file.pread(size, position)

    sound = verified_end(
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


def fence_damages(
    segment: Segment,
    partition_name: str,
    *,
    next_offset: int,
    epoch_of: Callable[[int], int],
    is_kept: bool,
) -> None:
    """Scan everything in a segment that was written before this process began, while the segment is served,
    and fence off the damaged ranges; in memory alone if not `is_kept`.

    `next_offset` is the first offset behind the segment.
    """
    size = segment.trust.unverified_end
    behind = next(segment.headers(size), None) if size < segment.size else None
    following_offset = next_offset if behind is None else behind[1].base_offset
    scan = BatchScan(
        segment.file.pread, size, segment.base_offset, epoch_of=epoch_of, following_offset=following_offset
    )
    for _ in scan:
        pass
    damages = scan.damages
    if scan.valid_end < size:
        damages = [*damages, scan.tail_damage(following_offset)]
    _note_damages(damages, segment, partition_name, is_kept=is_kept)
    segment.trust.note_all_verified()


def _note_damages(
    damages: Sequence[Damage], segment: Segment, partition_name: str, *, is_kept: bool = True
) -> None:
    """Log the damages, and fence them off, unless they are known."""
    trust = segment.trust
    if tuple(damages) == trust.damages:
        return
    for damage in damages:
        logger.error(
            "%s: offsets %d to %d are damaged (segment %d, bytes %d to %d) and will not be served",
            partition_name,
            damage.first_offset,
            damage.next_offset - 1,
            segment.base_offset,
            damage.position,
            damage.end_position,
        )
    trust.damages = tuple(damages)
    if is_kept:
        trust.save_damages()
