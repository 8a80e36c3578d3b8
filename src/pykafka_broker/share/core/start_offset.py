"""How the start offset moves: behind records that are done with, or with the start of the log.

It is written lazily, with the next write of states. Behind records it moves when a write is done, and when
records of aborted transactions or compacted ones are archived; Kafka waits for the next write in these cases
too, and stands still if nothing is left to be written.
"""

from __future__ import annotations

from pykafka_broker.machine.step import Step
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import LogStartMoved
from pykafka_broker.share.core.in_flight import Delivery, archived
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.share.core.turn import Turn


def move_behind_done(turn: Turn) -> bool:
    """Move the start offset behind the records that are done with for good, and forget whole batches of them;
    whether it has moved.

    A write on its way holds it back, and so does an offset that was not read since the state was loaded.
    Offsets between two batches are passed: there are no records.
    """
    last_done, passed, unread = _last_done(turn)
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


def _last_done(turn: Turn) -> tuple[int | None, int, int | None]:
    """The last offset up to which everything is done with, how many such records are not passed yet, and the
    first offset behind them that may not have been read.
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
    """Archive the records of one state between two offsets, for good and without a write; whether
    there are any.

    A batch that only partly lies there is kept by offset from now on.
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
    """Available records that have left the log are archived. Acquired ones stay with their member, who cannot
    acknowledge them any more: they are archived when the lock times out or the session ends.
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
