"""Random questions to share coordinators by seed, and bugs planted on purpose that they must find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pykafka_broker.coordinator.broker_queues import BrokerQueues
from pykafka_broker.coordinator.share import attempts, persister, questions, remote_states
from pykafka_broker.coordinator.share.attempts import Again
from pykafka_broker.coordinator.share.persister import Persister, ShareMap
from pykafka_broker.coordinator.share.remote_states import RemoteStates
from pykafka_broker.coordinator.share.service import ShareService
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.machine.lines import Lines
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.persister_model import PersisterModel
from tests.support.planted_bug import Bug

SEEDS = range(12)
STEPS = 150
#: The rarest of the planted bugs takes some lives of the model to show.
LIVES_TO_FIND_A_BUG = 80


async def test_the_persister_holds_whatever_happens() -> None:
    seen: set[str] = set()
    for seed in SEEDS:
        seen |= (await PersisterModel.life(seed, STEPS)).seen
    assert seen == {
        *("answered", "refused", "refused again and again", "not found"),
        *("in vain", "cut short", "gone away"),
    }


def _without_turns(_: Any) -> Any:
    @asynccontextmanager
    async def spoilt(_self: Any, _key: Any) -> Any:
        yield

    return spoilt


def _forgetting_the_line(turn: Any) -> Any:
    """The line is forgotten with the first answer, whoever stands in it."""

    forgotten: Counter[Any] = Counter()

    @asynccontextmanager
    async def spoilt(self: Any, key: Any) -> Any:
        async with turn(self, (key, forgotten[key])):
            try:
                yield
            finally:
                forgotten[key] += 1

    return spoilt


def _never_leaving_the_line(turn: Any) -> Any:
    """Who goes away before its turn stays in line."""
    left: list[Any] = []

    @asynccontextmanager
    async def spoilt(self: Any, key: Any) -> Any:
        had_its_turn = False
        try:
            async with turn(self, key):
                had_its_turn = True
                yield
        finally:
            if not had_its_turn:
                left.append(turn(self, object()))
                await left[-1].__aenter__()

    return spoilt


def _without_a_second_look(ensure_topic: Any) -> Any:
    def spoilt(self: ShareMap) -> Any:
        async def in_vain() -> bool:
            await ensure_topic.__get__(self)()
            return False

        return in_vain

    return property(spoilt)


def _ended_in_time(answer: bool) -> Callable[[Any], Any]:
    """Pauses say so, or that they were not, whatever has ended them."""

    def spoil(until: Any) -> Any:
        async def spoilt(self: Wait, *when: Any) -> bool:
            await until(self, *when)
            return answer

        return spoilt

    return spoil


def _keeping_look_ups(after: Any) -> Any:
    """Look-ups in vain are not forgotten when a coordinator is found."""

    def spoilt(tried: Any, deed: str, refusal: Any) -> Any:
        decision = after(tried, deed, refusal)
        if isinstance(decision, Again):
            return decision._replace(attempts=decision.attempts._replace(lookups=tried.lookups))
        return decision

    return spoilt


def _swapped(answers_in: Any) -> Any:
    """Each share partition gets the answer of another."""

    def spoilt(*args: Any) -> Any:
        found = answers_in(*args)
        return dict(zip(found, reversed(list(found.values())), strict=True))

    return spoilt


def _without(error: ErrorCode) -> Callable[[frozenset[ErrorCode]], frozenset[ErrorCode]]:
    return lambda right: right - {error}


async def _at_once(_self: Any, _key: Any) -> None:
    pass


BUGS = [
    Bug("questions do not wait for their turn", Lines, "turn", _without_turns),
    Bug("the line is forgotten too early", Lines, "turn", _forgetting_the_line),
    Bug("who goes away stays in the line", Lines, "turn", _never_leaving_the_line),
    Bug("the metadata is not looked at again", ShareMap, "ensure_topic", _without_a_second_look),
    Bug("news of coordinators are ignored", Persister, "look_again", lambda _: lambda self: None),
    Bug("attempts after news count", Wait, "until", _ended_in_time(False)),
    Bug("no attempts count", Wait, "until", _ended_in_time(True)),
    Bug("a coordinator that is being loaded is not waited for", ShareService, "loaded", lambda _: _at_once),
    Bug("there are six attempts", attempts, "MAX_ATTEMPTS", lambda right: right + 1),
    Bug("there are four attempts", attempts, "MAX_ATTEMPTS", lambda right: right - 1),
    Bug("pauses do not grow", attempts, "PAUSES", lambda _: Backoff(first_ms=2_000, greatest_ms=2_000)),
    Bug("look-ups are never forgotten", persister, "after_refusal", _keeping_look_ups),
    *(
        Bug(f"{error.name} does not pass by", attempts, "PASSING", _without(error))
        for error in sorted(attempts.PASSING)
    ),
    Bug("fenced leaders ask again", attempts, "PASSING", lambda it: it | {ErrorCode.FENCED_LEADER_EPOCH}),
    Bug(
        "dead brokers are asked",
        RemoteStates,
        "is_reachable",
        lambda _: lambda self, broker_id: broker_id > 0,
    ),
    Bug("answers are swapped", remote_states, "answers_in", _swapped),
    Bug(
        "what is left out is done",
        remote_states,
        "left_out",
        lambda _: lambda kind, question: kind.answer(None, None),
    ),
    Bug("errors in answers are not seen", questions, "error_of", lambda _: lambda code: ErrorCode.NONE),
    Bug(
        "a share partition is in a request twice",
        BrokerQueues,
        "__init__",
        lambda right: lambda self, exchange, key: right(self, exchange, lambda question: object()),
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
async def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(LIVES_TO_FIND_A_BUG):
            await PersisterModel.life(seed, STEPS)
