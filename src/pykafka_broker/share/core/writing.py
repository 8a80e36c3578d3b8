"""A write of states succeeds, or fails and is taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core.batch import Piece
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import OK, WriteDone
from pykafka_broker.share.core.in_flight import Delivery, InFlightState, committed, rolled_back
from pykafka_broker.share.core.loading import told
from pykafka_broker.share.core.records import WrittenBatch
from pykafka_broker.share.core.start_offset import move_behind_done
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.share.core.turn import Turn


def on_write_done(state: SharePartition, event: WriteDone, config: ShareConfig) -> Step[SharePartition]:
    """End the transitions that waited for the write, and answer the waiting request.

    A failed write of timed-out locks changes nothing: the locks are lost all the same.
    """
    turn = Turn(state, config, event.now_ms)
    done = next((pending for pending in state.writes if pending.write.write_id == event.write_id), None)
    if done is None:
        return turn.step()
    turn.writes = tuple(pending for pending in state.writes if pending is not done)
    failed = event.error is not ErrorCode.NONE
    if failed:
        roll_back(turn, event.write_id, done.write.batches)
    else:
        commit(turn, event.write_id, done.write.batches)
    moved = move_behind_done(turn)
    if moved or (turn.look_for_available and not state.look_for_available):
        turn.wake()
    turn.reply(done.token, told(event.error, event.message) if failed else OK)
    return turn.step()


def commit(turn: Turn, write_id: int, batches: Iterable[WrittenBatch]) -> None:
    """Keep the transitions of a write that has succeeded."""

    def after(piece: Piece) -> InFlightState:
        state = piece.state
        if state.rollback is None or state.rollback.write_id != write_id:
            return state
        turn.look_for_available |= state.delivery is Delivery.AVAILABLE
        return committed(state)

    for place, (first, last) in _spans(turn, batches).items():
        turn.change(place, first, last, after)


def roll_back(turn: Turn, write_id: int, batches: Iterable[WrittenBatch]) -> None:
    """Take back the transitions of a failed write: the member has its records again, unless its lock has
    timed out or they have left the log.
    """

    def after(piece: Piece) -> InFlightState:
        state = piece.state
        if state.rollback is None or state.rollback.write_id != write_id:
            return state
        back = rolled_back(state, turn.now_ms, is_in_log=piece.first_offset >= turn.start_offset)
        turn.look_for_available |= back.delivery is Delivery.AVAILABLE
        if back.delivery is Delivery.ACQUIRED:
            turn.watch(back.lock_until_ms)
        return back

    for place, (first, last) in _spans(turn, batches).items():
        start = turn.start_offset
        for low, high in ((first, min(last, start - 1)), (max(first, start), last)):
            if low <= high:
                turn.change(place, low, high, after)


def _spans(turn: Turn, batches: Iterable[WrittenBatch]) -> Mapping[int, tuple[int, int]]:
    """The first and the last offset written of each in-flight batch, by its place.

    A write may name every record of a large batch by itself, and is in the order of the acknowledgements.
    """
    spans: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for place in turn.places(batch.first_offset, batch.last_offset):
            first, last = spans.get(place, batch[:2])
            spans[place] = min(first, batch.first_offset), max(last, batch.last_offset)
    return spans
