"""Random events by seed against a ledger of single records, and bugs planted on purpose that it must find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.share.core import (
    acknowledge,
    acquire,
    fetching,
    in_flight,
    loading,
    new_batches,
    records,
    redelivery,
    release,
    start_offset,
    turn,
    writing,
)
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import Acquired
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.turn import Turn
from tests.support.planted_bug import Bug
from tests.support.share_partition_world import World

SEEDS = range(20)
STEPS = 300
#: The rarest of the planted bugs takes some ten lives of the world to show.
LIVES_TO_FIND_A_BUG = 80

#: What has to happen in the lives of all seeds for them to prove anything.
EVERYTHING = {
    "aborted",
    "acknowledged",
    "acquired",
    "acquired again",
    "compacted in flight",
    "deleted in flight",
    "last delivery",
    "left over",
    "lock ended during a write",
    "locks ended",
    "no room",
    "refused: INVALID_RECORD_STATE",
    "refused: INVALID_REQUEST",
    "reload",
    "session closed",
    "throttled",
    "write failed",
    "written",
}


def test_every_record_is_accounted_for_whatever_happens() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        world = World(seed)
        world.run(STEPS)
        happened.update(world.happened)

    assert set(happened) == EVERYTHING
    assert min(happened.values()) > 10


def _says(value: Any) -> Callable[[Any], Any]:
    return lambda right: lambda *_, **__: value


def _does_nothing(right: Any) -> Any:
    return lambda *_, **__: None


def _never_at_the_limit(right: Any) -> Any:
    return lambda state, limit, *, is_in_log: right(state, limit + 1, is_in_log=is_in_log)


def _back_into_the_log(right: Any) -> Any:
    return lambda state, limit, *, is_in_log: right(state, limit, is_in_log=True)


def _without_a_count(right: Any) -> Any:
    return lambda state, *rest: right(state, *rest)._replace(delivery_count=state.delivery_count)


def _loses_the_lock(right: Any) -> Any:
    return lambda state, *rest: right(state, *rest)._replace(lock_until_ms=in_flight.NO_LOCK)


def _back_to_available(right: Any) -> Any:
    return lambda state, now_ms, *, is_in_log: in_flight.timed_out(state, Delivery.AVAILABLE)


def _one_too_many(right: Any) -> Any:
    return lambda found, first, last, to: right(found, first, min(last + 1, found.last_offset), to)


def _commits_every_write(right: Any) -> Any:
    def spoilt(turn: Turn, write_id: int, batches: Any) -> None:
        for pending in turn.state.writes:
            right(turn, pending.write.write_id, pending.write.batches)

    return spoilt


def _moves_over_gaps(right: Any) -> Any:
    def spoilt(turn: Turn) -> Any:
        turn.gap_window = None
        return right(turn)

    return spoilt


def _moves_over_transitions(right: Any) -> Any:
    return property(lambda state: state.delivery in in_flight.TERMINAL)


def _one_more_record(right: Any) -> Any:
    def spoilt(turn: Any, event: Any, place: Any, first: int, last: int, max_records: int) -> Any:
        return right(turn, event, place, first, last, max_records + 1)

    return spoilt


def _room_for_all(right: Any) -> Any:
    return lambda state, event, config: (event.batches[-1].last_offset, event.max_records)


def _keeps_no_rest(right: Any) -> Any:
    def spoilt(turn: Any, state: Any, first: int, end: int, max_records: int) -> Any:
        return right(turn, state, first, min(end, first + max_records - 1), max_records)

    return spoilt


def _taken_by_anybody(right: Any) -> Any:
    def spoilt(piece: Any, member_id: str) -> None:
        if piece.state.member_id != member_id:
            return
        right(piece, member_id)

    return spoilt


def _without_timer(right: Any) -> Any:
    def spoilt(turn: Turn, *rest: Any) -> None:
        timer, effects = turn.timer_at_ms, list(turn.effects)
        right(turn, *rest)
        turn.timer_at_ms, turn.effects = timer, effects

    return spoilt


def _writes_less(right: Any) -> Any:
    return lambda self, token, batches: right(self, token, batches[:-1])


def _gone_but_not_for_good(right: Any) -> Any:
    return lambda state: right(state)._replace(is_gone=False)


def _forgets_the_first_batch(right: Any) -> Any:
    def spoilt(state: Any, event: Any, config: Any) -> Any:
        return right(state, event._replace(batches=event.batches[1:]), config)

    return spoilt


def _behind_all(_: Any) -> Any:
    return lambda state, config: fetching.behind_end(state)


BUGS = [
    Bug("a record may be delivered once more than its limit", release, "given_back", _never_at_the_limit),
    Bug("a released record may be delivered once more", acknowledge, "given_back", _never_at_the_limit),
    Bug("what left the log is available again", release, "given_back", _back_into_the_log),
    Bug("a failed write brings back what left the log", in_flight, "given_back", _back_into_the_log),
    Bug("a delivery is not counted", redelivery, "acquired", _without_a_count),
    Bug("a transition forgets the lock", acknowledge, "in_transition", _loses_the_lock),
    Bug("a failed write makes records available", writing, "rolled_back", _back_to_available),
    Bug("a failed write is not taken back", writing, "roll_back", _does_nothing),
    Bug("a refused request is not taken back", acknowledge, "roll_back", _does_nothing),
    Bug("a write commits others too", writing, "commit", _commits_every_write),
    Bug("one record too many is changed", turn, "changed", _one_too_many),
    Bug(
        "the start offset passes what was never read",
        start_offset,
        "last_offset_acknowledged",
        _moves_over_gaps,
    ),
    Bug(
        "the start offset passes writes on their way",
        in_flight.InFlightState,
        "is_done_for_good",
        _moves_over_transitions,
    ),
    Bug("the start offset does not move", writing, "move_behind_done", _says(False)),
    Bug("a record limit is exceeded", acquire, "acquire_part", _one_more_record),
    Bug("records in flight are not limited", acquire, "last_offset_and_max_records", _room_for_all),
    Bug("the rest of a batch is forgotten", new_batches, "acquire_at_most", _keeps_no_rest),
    Bug("others may acknowledge by offset", acknowledge, "check_piece", _taken_by_anybody),
    Bug("renewing does not renew", acknowledge, "renewed", lambda _: lambda state, lock: state),
    Bug("what was archived for good comes back", start_offset, "archived", _gone_but_not_for_good),
    Bug(
        "aborted records are delivered",
        acquire,
        "without_aborted",
        lambda _: lambda turn, got, *__: Acquired(tuple(got)),
    ),
    Bug("released records are not looked for", fetching, "first_available", _says(None)),
    Bug("those who wait do not see what is released", fetching, "earliest_begin", _behind_all),
    Bug("records that fail are not singled out", acquire, "is_throttled", _says(False)),
    Bug(
        "the last delivery is not alone",
        ShareConfig,
        "last_delivery_count",
        lambda _: property(lambda self: None),
    ),
    Bug("a loaded state loses a batch", loading, "on_state_read", _forgets_the_first_batch),
    Bug("a lock that a failed write gives back has no timer", writing, "roll_back", _without_timer),
    Bug("a write forgets a state", Turn, "write", _writes_less),
    Bug("the fold of writes keeps the older state", records, "uncovered", lambda _: lambda old, new: [old]),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises((AssertionError, IllegalState)):
        for seed in range(LIVES_TO_FIND_A_BUG):
            World(seed).run(STEPS)
