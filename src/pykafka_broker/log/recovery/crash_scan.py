"""The end of a log after a crash: every segment that may hold unflushed batches is scanned.

The segments at or past the recovery point are scanned batch by batch: their indexes are rebuilt, a torn tail
is cut off, damage is fenced. Before that the notes beside the log are compared with the batches:

* the note of density (`density.py`) is believed unless offsets are missing where it says that none is;
* the leader epochs are believed unless the batches contradict them;
* the recovery point is believed unless it is past every offset that a torn last batch can have held.
"""

from __future__ import annotations

import logging

from pykafka_broker.log.config import LONG_MAX
from pykafka_broker.log.disk.names import DENSE_SUFFIX
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.recovery.found_log import FoundLog
from pykafka_broker.log.segment.header_walk import walk_headers
from pykafka_broker.log.segment.segment_scan import scan_segment
from pykafka_broker.log.segment.survey import survey
from pykafka_broker.protocol.records.batch import HEADER, HEADER_BYTES, MAGIC, BatchHeader

logger = logging.getLogger("org.apache.kafka.storage.internals.log.LogLoader")


def scan_log(
    found: FoundLog, recovery_point: int, *, synced_end: int, high_watermark: int
) -> tuple[int, int]:
    """Scan the segments at or past `recovery_point`, and mend the effects of the crash; return the log end
    offset, and the base offset of the first segment that was scanned.

    Everything below `synced_end` was on stable storage, and everything below `high_watermark` was visible to
    consumers, as far as the checkpoints tell.
    """
    _doubt_notes(found, recovery_point)
    _drop_empty_end(found, recovery_point)
    ends = [*[segment.base_offset for segment in found.segments[1:]], None]
    unflushed = [
        (segment, end)
        for segment, end in zip(found.segments, ends, strict=True)
        if (end or LONG_MAX) > recovery_point
    ]
    synced_end = _believed_synced_end(found, synced_end, high_watermark)
    epoch_of = LeaderEpochs(found.epochs.entries).epoch_for_offset
    log_end_offset = found.segments[-1].base_offset
    for segment, next_base_offset in unflushed:
        segment.aborted.reset()
        log_end_offset = scan_segment(
            segment,
            found.name,
            next_base_offset=next_base_offset,
            epoch_of=epoch_of,
            gaps_allowed=found.gaps_are_allowed,
            reaches_next=_is_dense_below(found, next_base_offset),
            synced_end=synced_end,
            on_batch=found.note_epoch,
        )
    return log_end_offset, unflushed[0][0].base_offset


def _doubt_notes(found: FoundLog, recovery_point: int) -> None:
    """Do not believe the note of density, nor the leader epochs, where the batches contradict them."""
    recent = [
        segment
        for segment, following in zip(found.segments, [*found.segments[1:], None], strict=True)
        if following is None or following.base_offset > recovery_point
    ]
    epoch_of = found.epochs.epoch_for_offset
    surveyed = survey(recent, epoch_of)
    contradicts_epochs = surveyed.contradicts_epochs
    before = [segment for segment in found.segments[: -len(recent)] if segment.size]
    if contradicts_epochs and before:
        # The only batch of a new segment is not the only one of the log.
        contradicts_epochs = survey([before[-1], *recent], epoch_of).contradicts_epochs
    found.gaps_are_allowed = found.gaps_are_allowed or surveyed.has_gaps
    if found.dense_from is not None and surveyed.last_gap >= found.dense_from:
        logger.warning(
            "%s: offset %d is missing: another program has compacted the log", found.name, surveyed.last_gap
        )
        found.files.remove(found.path(found.dense_from, DENSE_SUFFIX))
        found.dense_from, found.gaps_are_allowed = None, True
    if contradicts_epochs:
        found.forget_epochs()


def _is_dense_below(found: FoundLog, offset: int | None) -> bool:
    """Whether offsets that are missing just below this one must have been lost."""
    if offset is None or found.dense_from is None:
        return not found.gaps_are_allowed
    return offset > found.dense_from


def _drop_empty_end(found: FoundLog, recovery_point: int) -> None:
    """Let the log end in the last segment that holds anything.

    A power cut can leave the file of a new segment, and not all of the one before. Offsets would jump over
    the lost ones, and the torn end before the empty file would count as damage inside the log.
    """
    while len(found.segments) > 1 and found.segments[-1].size == 0:
        base_offset = found.segments[-1].base_offset
        if base_offset <= recovery_point or not _is_dense_below(found, base_offset):
            return
        found.segments.pop().files.remove_all()


def _believed_synced_end(found: FoundLog, synced_end: int, high_watermark: int) -> int:
    """Lower a `synced_end` that is past the offsets of a torn last batch, unless the high watermark, which is
    in another file, confirms it.
    """
    segment = found.segments[-1]
    if synced_end <= max(segment.base_offset, high_watermark):
        return synced_end
    read = segment.file.pread
    position, next_offset = 0, segment.base_offset
    for start, header in walk_headers(read, 0, segment.size):
        position, next_offset = start + header.size_in_bytes, header.next_offset
    if position + HEADER_BYTES > segment.size:
        return synced_end
    torn = BatchHeader._make(HEADER.unpack(read(HEADER_BYTES, position)))
    is_cut_off = torn.magic == MAGIC and position + torn.size_in_bytes > segment.size
    if not is_cut_off or not torn.base_offset == next_offset <= torn.last_offset < synced_end - 1:
        return synced_end
    logger.warning(
        "%s: the recovery point %d is past what the log can have held: ignored, it is %d",
        found.name,
        synced_end,
        torn.next_offset,
    )
    return torn.next_offset
