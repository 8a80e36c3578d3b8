"""Scanning a segment's file: rebuild its indexes, find what is damaged, cut what is torn; say so in the log.

At start for what a crash may have torn, and while running for a closed segment whose index or headers turn
out to lead nowhere. The judgement is `recovery.Scan`'s; this is what is done about it. Blocking;
worker-safe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykafka_broker.log.recovery import Damage, Scan
from pykafka_broker.log.segment import Segment
from pykafka_broker.protocol.records.batch import BatchHeader

logger = logging.getLogger(__name__)


def scan_segment(
    segment: Segment,
    partition_name: str,
    *,
    next_base_offset: int | None,
    epoch_of: Callable[[int], int],
    gaps_allowed: bool,
    reaches_next: bool = False,
    on_batch: Callable[[BatchHeader], object] = lambda header: None,
) -> int:
    """Read all of a segment that nobody else uses; where its offsets end.

    `next_base_offset` is where the segment behind begins. Without one the end may be torn, and is cut;
    before another segment it is damaged like any other place. With `reaches_next` so are offsets that are
    missing there without a trace: a power cut may take the end of a file that was not synced.
    """
    segment.reset_indexes()
    scan = Scan(
        segment.file.pread, segment.size, segment.base_offset, epoch_of=epoch_of, gaps_allowed=gaps_allowed
    )
    for position, header in scan:
        size, last_offset = header.size_in_bytes, header.last_offset
        segment.note_batch(position, size, last_offset, header.max_timestamp, last_offset)
        on_batch(header)
    damages = scan.damages
    torn_bytes = segment.size - scan.valid_end
    is_short = reaches_next and next_base_offset is not None and scan.next_offset < next_base_offset
    if (torn_bytes or is_short) and next_base_offset is not None:
        damages = [*damages, scan.tail_damage(next_base_offset)]
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
    if tuple(damages) != segment.damages:
        for damage in damages:
            _report(damage, segment, partition_name)
        segment.damages = tuple(damages)
        segment.save_damages()
    if next_base_offset is not None:
        segment.save_indexes(final=True)
        segment.release()
    segment.was_scanned = True
    return scan.next_offset


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
