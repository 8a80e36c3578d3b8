"""The end of a log after a clean stop: only the batches after the last index entry are read.

A clean stop leaves the indexes complete and the log end offset in the recovery point checkpoint. If a
batch, an index or that offset disagrees, the stop was not clean, and the log has to be scanned
(`crash_scan.py`).
"""

from __future__ import annotations

from pykafka_broker.log.recovery.found_log import FoundLog
from pykafka_broker.log.segment.batch_scan import BatchScan
from pykafka_broker.log.segment.segment import Segment


def clean_end(found: FoundLog, expected_end: int | None) -> int | None:
    """The log end offset; None if the last segment is not as a clean stop leaves it.

    `expected_end` is the checkpointed recovery point, None if there is none.
    """
    segment = found.segments[-1]
    last_entry = segment.indexes.last_offset_entry(segment)
    indexed_offset, start = last_entry or (-1, 0)
    segment.indexes.bytes_since_entry = segment.size - start
    end_offset = _scanned_end(found, segment, start, indexed_offset, expected_end)
    if end_offset is None or expected_end not in (None, end_offset):
        return None
    segment.first_batch_timestamp()
    return end_offset


def _scanned_end(
    found: FoundLog, segment: Segment, start: int, indexed_offset: int, expected_end: int | None
) -> int | None:
    """The log end offset if everything from position `start` on is sound."""
    start_offset = segment.base_offset
    if start:
        first = next(segment.headers(start), None)
        if first is None or first[1].last_offset != indexed_offset:
            return None
        start_offset = first[1].base_offset
    for damage in segment.trust.damages:
        if damage.end_position > start:
            start, start_offset = damage.end_position, damage.next_offset
    scan = BatchScan(
        segment.file.pread,
        segment.size,
        segment.base_offset,
        epoch_of=found.epochs.epoch_for_offset,
        gaps_allowed=found.gaps_are_allowed,
        following_offset=expected_end,
        start_position=start,
        start_offset=start_offset,
    )
    for position, header in scan:
        if position == 0:
            segment.indexes.first_timestamp = header.max_timestamp
    if scan.damages or scan.valid_end != segment.size:
        return None
    segment.trust.unverified_end = start
    return scan.next_offset
