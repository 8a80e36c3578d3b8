"""Moves the start offset: behind records that are done, or with the start of the log.

The start offset is written lazily, with the next write of states. It moves behind records when a write is
done, and when records of aborted transactions or compacted ones are archived. In the latter two cases
Kafka moves it with the next write, and not at all if there is none.
"""

from __future__ import annotations

from pykafka_broker.machine.step import Step
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import LogStartMoved
from pykafka_broker.share.core.in_flight import Delivery, archived
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.share.core.turn import Turn


def move_behind_done(turn: Turn) -> bool:
    """Move the start offset behind the first records that are permanently done, and drop whole batches of
    them; True if it has moved.

    It does not pass records in transition, nor offsets that were not read since the state was loaded. It
    passes other offsets between two batches: they have no records.
    """
    last_done, passed, unread = last_offset_acknowledged(turn)
    if last_done is None:
        return False
    if last_done == turn.batches[-1].last_offset:
        turn.start_offset = turn.end_offset = max(turn.start_offset, last_done + 1)
        turn.batches.clear()
        turn.delivery_complete_count = 0
        return True
    before = turn.start_offset
    place = turn.floor(last_done)
    if last_done < turn.batches[place].last_offset:
        begin, done = last_done + 1, place
    else:
        begin, done = turn.batches[place + 1].first_offset, place + 1
        if unread is not None:
            begin = min(begin, unread)
    turn.start_offset = max(before, begin)
    _cut_gap_window(turn)
    turn.delivery_complete_count -= passed
    del turn.batches[:done]
    return turn.start_offset > before


def last_offset_acknowledged(turn: Turn) -> tuple[int | None, int, int | None]:
    """The last offset up to which all records are permanently done, their number from the start offset on,
    and the first later offset that may be unread.
    """
    last_done: int | None = None
    passed = 0
    window = turn.active_gap_window
    unread = window.start_offset if window is not None else None
    for batch in turn.batches:
        if unread is not None:
            if batch.first_offset > unread:
                break
            unread = max(unread, batch.last_offset + 1)
        for piece in batch.pieces(batch.first_offset, batch.last_offset):
            if not piece.state.is_done_for_good:
                return last_done, passed, unread
            last_done = piece.last_offset
            passed += max(piece.last_offset - max(piece.first_offset, turn.start_offset) + 1, 0)
    return last_done, passed, unread


def archive(turn: Turn, first_offset: int, last_offset: int, delivery: Delivery) -> bool:
    """Archive the records in state `delivery` between two offsets, without a write; True if there are any.

    A batch that lies only partly between them is kept by offset from now on.
    """
    any_archived = False
    for place in turn.places(first_offset, last_offset):
        batch = turn.batches[place]
        if batch.last_offset < first_offset:
            continue
        if not any(piece.state.delivery is delivery for piece in batch.pieces(first_offset, last_offset)):
            continue
        any_archived = True
        if not batch.is_within(first_offset, last_offset):
            turn.by_offset(place)
        turn.change(
            place,
            first_offset,
            last_offset,
            lambda piece: archived(piece.state) if piece.state.delivery is delivery else piece.state,
        )
    return any_archived


def on_log_start_moved(
    state: SharePartition, event: LogStartMoved, config: ShareConfig
) -> Step[SharePartition]:
    """Available records that have left the log are archived. Acquired ones stay with their member, whose
    acknowledgements have no effect: they are archived when the lock times out or the session ends.
    """
    turn = Turn(state, config)
    begin = event.log_start_offset
    if begin <= turn.start_offset:
        return turn.step()
    if archive(turn, turn.start_offset, begin - 1, Delivery.AVAILABLE):
        turn.look_for_available = True
    for place in turn.places(turn.start_offset, begin - 1) if turn.batches else ():
        for piece in turn.batches[place].pieces(turn.start_offset, begin - 1):
            if piece.state.is_done:
                turn.delivery_complete_count -= piece.size
    turn.start_offset = begin
    turn.end_offset = max(turn.end_offset, begin) if turn.batches else begin
    _cut_gap_window(turn)
    turn.wake()
    return turn.step()


def _cut_gap_window(turn: Turn) -> None:
    """Nothing is read again below the start offset."""
    window, start = turn.gap_window, turn.start_offset
    if window is not None and window.start_offset < start:
        turn.gap_window = window._replace(start_offset=start) if start <= window.end_offset else None
