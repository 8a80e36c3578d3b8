"""A member loses its records: its share session ends, or its locks time out.

Both give the records back, or archive those at the delivery count limit and those that have left the log.
The end of a session is a transition: if its write fails, the member has its records again. A timed-out
lock is lost even if its write fails.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.machine.step import Step
from pykafka_broker.share.core.batch import Piece
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import OK, ReleaseMember, TimerFired
from pykafka_broker.share.core.in_flight import (
    Delivery,
    InFlightState,
    given_back,
    in_transition,
    timed_out,
)
from pykafka_broker.share.core.records import WrittenBatch
from pykafka_broker.share.core.state import Phase, SharePartition
from pykafka_broker.share.core.turn import Turn, written_batch


def on_release_member(
    state: SharePartition, event: ReleaseMember, config: ShareConfig
) -> Step[SharePartition]:
    """Give back all records that the member has acquired; the deliveries stay counted."""
    turn = Turn(state, config, event.now_ms)
    limit = config.delivery_count_limit
    written: list[WrittenBatch] = []

    def lost(piece: Piece) -> InFlightState:
        if piece.state.delivery is not Delivery.ACQUIRED or piece.state.member_id != event.member_id:
            return piece.state
        delivery = given_back(piece.state, limit, is_in_log=piece.first_offset >= turn.start_offset)
        after = in_transition(piece.state, delivery, turn.next_write_id, limit)
        written.append(written_batch(piece._replace(state=after)))
        return after

    for place, batch in enumerate(state.batches):
        if any(
            run.state.member_id == event.member_id and run.state.delivery is Delivery.ACQUIRED
            for run in batch.runs
        ):
            _change_around_start(turn, place, lost)
    if written:
        turn.write(event.token, written)
    else:
        turn.reply(event.token, OK)
    return turn.step()


def on_timer(state: SharePartition, event: TimerFired, config: ShareConfig) -> Step[SharePartition]:
    """Take the locks that have timed out, and set the timer for the next. A share partition that is
    fenced or has failed ignores its locks.
    """
    if state.phase is not Phase.ACTIVE:
        return Step(state._replace(timer_at_ms=None))
    turn = Turn(state, config, event.now_ms)
    turn.timer_at_ms = None
    limit = config.delivery_count_limit
    written: list[WrittenBatch] = []
    next_ms: int | None = None

    def lost(piece: Piece) -> InFlightState:
        if piece.state.delivery is not Delivery.ACQUIRED or piece.state.lock_until_ms > event.now_ms:
            return piece.state
        delivery = given_back(piece.state, limit, is_in_log=piece.first_offset >= turn.start_offset)
        after = timed_out(piece.state, delivery)
        written.append(written_batch(piece._replace(state=after)))
        turn.look_for_available |= delivery is Delivery.AVAILABLE
        return after

    for place, batch in enumerate(state.batches):
        has_lost = False
        for run in batch.runs:
            if run.state.delivery is Delivery.ACQUIRED:
                end_ms = run.state.lock_until_ms
                if end_ms <= event.now_ms:
                    has_lost = True
                elif next_ms is None or end_ms < next_ms:
                    next_ms = end_ms
        if has_lost:
            _change_around_start(turn, place, lost)
    if written:
        turn.write(None, written)
        turn.wake()
    if next_ms is not None:
        turn.watch(next_ms)
    return turn.step()


def _change_around_start(turn: Turn, place: int, lost: Callable[[Piece], InFlightState]) -> None:
    """Change a whole batch; records below and above the start offset are changed separately."""
    batch = turn.batches[place]
    start = turn.start_offset
    if turn.is_cut_by_start(batch):
        turn.by_offset(place)
        turn.change(place, batch.first_offset, start - 1, lost)
        turn.change(place, start, batch.last_offset, lost)
    else:
        turn.change(place, batch.first_offset, batch.last_offset, lost)
