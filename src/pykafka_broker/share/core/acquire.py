"""Fetched records become a member's: which of them, and how many.

Kafka's rules: records that are available again come first, then records after the end offset. In
batch-optimized mode the limit of a request is soft, so that whole batches are acquired.
`share.partition.max.record.locks` limits the offsets from the start to the end offset; at the limit only
records in flight can be acquired.
"""

from __future__ import annotations

from pykafka_broker.machine.step import Step
from pykafka_broker.share.core.aborted import without_aborted
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import Acquire, AcquiredRecords, AcquireMode
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.new_batches import acquire_new, move_gap_window
from pykafka_broker.share.core.redelivery import acquire_part, acquire_whole, is_throttled
from pykafka_broker.share.core.start_offset import archive, move_behind_done
from pykafka_broker.share.core.state import Phase, SharePartition
from pykafka_broker.share.core.turn import Turn


def on_acquire(state: SharePartition, event: Acquire, config: ShareConfig) -> Step[SharePartition]:
    """Acquire records for a member from the batches that were read."""
    turn = Turn(state, config, event.now_ms)
    acquired: list[AcquiredRecords] = []
    archived = False
    if state.phase is Phase.ACTIVE and event.batches and event.batches[-1].last_offset >= state.start_offset:
        last_offset, max_records = last_offset_and_max_records(state, event, config)
        if max_records > 0:
            archived = _archive_compacted(turn, event)
            acquired = _acquire(turn, event, last_offset, max_records)
    result = without_aborted(turn, acquired, event.batches, event.aborted)
    if archived or result.size < _count(acquired):
        move_behind_done(turn)
    turn.reply(event.token, result)
    return turn.step()


def _count(acquired: list[AcquiredRecords]) -> int:
    return sum(part.last_offset - part.first_offset + 1 for part in acquired)


def last_offset_and_max_records(
    state: SharePartition, event: Acquire, config: ShareConfig
) -> tuple[int, int]:
    """The last offset that may be acquired, and how many records."""
    last_offset = event.batches[-1].last_offset
    room = config.partition_max_record_locks - state.in_flight_records
    max_records = min(event.max_records, room)
    if max_records <= 0 < event.max_records and event.fetch_offset <= state.end_offset:
        max_records = min(event.max_records, state.end_offset - event.fetch_offset + 1)
        last_offset = min(last_offset, state.end_offset)
    return last_offset, max_records


def _archive_compacted(turn: Turn, event: Acquire) -> bool:
    """Archive the records that compaction removed between the fetch offset and the first batch read; True
    if some of them were available.
    """
    base_offset = event.batches[0].base_offset
    if event.fetch_offset >= base_offset:
        return False
    if turn.gap_window is not None:
        # A gap without records; Kafka would read it again and again.
        move_gap_window(turn, base_offset)
    return archive(turn, event.fetch_offset, base_offset - 1, Delivery.AVAILABLE)


def _acquire(turn: Turn, event: Acquire, last_offset: int, max_records: int) -> list[AcquiredRecords]:
    """Acquire up to `last_offset`; records already in flight keep their batches."""
    read_from = event.batches[0].base_offset
    begin = read_from
    place = turn.floor(begin)
    if place >= 0 and turn.batches[place].last_offset >= begin:
        begin = turn.batches[place].first_offset
    else:
        begin = max(begin, turn.start_offset)
    overlapping = [
        batch
        for batch in (turn.batches[at] for at in turn.places(begin, last_offset))
        if min(begin, read_from) <= batch.first_offset <= last_offset
    ]
    if not overlapping:
        return acquire_new(turn, event, begin, last_offset, max_records)
    acquired: list[AcquiredRecords] = []
    count = 0
    known_to = begin
    for batch in overlapping:
        if count >= max_records:
            break
        if turn.active_gap_window is not None:
            if known_to < batch.first_offset:
                new = acquire_new(turn, event, known_to, batch.first_offset - 1, max_records - count)
                acquired += new
                count += _count(new)
            known_to = max(batch.last_offset + 1, turn.start_offset)
            if count >= max_records:
                break
        throttled = is_throttled(batch, read_from, last_offset, turn.config)
        if throttled and acquired:
            max_records = 0
            break
        again = _acquire_again(turn, event, batch.first_offset, last_offset, max_records - count, throttled)
        acquired += again
        count += _count(again)
        if throttled and again:
            max_records = 0
            break
    behind = max(overlapping[-1].last_offset + 1, turn.start_offset)
    if count < max_records and behind <= last_offset:
        acquired += acquire_new(turn, event, behind, last_offset, max_records - count)
    if acquired:
        move_gap_window(turn, acquired[-1].last_offset + 1)
    return acquired


def _acquire_again(
    turn: Turn, event: Acquire, first_offset: int, last_offset: int, max_records: int, throttled: bool
) -> list[AcquiredRecords]:
    """Acquire the available records of the in-flight batch that begins at an offset."""
    place = turn.floor(first_offset)
    batch = turn.batches[place]
    read_from = event.batches[0].base_offset
    if not batch.by_offset and not batch.state.can_be_acquired:
        return []
    too_large = event.mode is AcquireMode.RECORD_LIMIT and batch.size > max_records
    if batch.by_offset or throttled or too_large or not batch.is_within(read_from, last_offset):
        return acquire_part(turn, event, place, read_from, last_offset, max_records)
    return [acquire_whole(turn, event, place)]
