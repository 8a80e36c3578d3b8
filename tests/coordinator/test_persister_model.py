"""Random questions to share coordinators by seed, and bugs planted on purpose that they must find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pykafka_broker.coordinator import broker_queues
from pykafka_broker.coordinator.share import attempts, persister, questions, remote_states
from pykafka_broker.coordinator.share.attempts import Again
from pykafka_broker.coordinator.share.persister import Persister
from pykafka_broker.coordinator.share.remote_states import RemoteStates
from pykafka_broker.coordinator.share.service import ShareService
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.persister_model import PersisterModel

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


@dataclass(frozen=True)
class Bug:
    """A planted bug: what is done wrong, and where."""

    name: str
    where: Any
    attribute: str
    #: Makes the wrong function from the right one.
    spoil: Callable[[Any], Any]


def _without_turns(_: Any) -> Any:
    @asynccontextmanager
    async def spoilt(_self: Any, _key: Any) -> Any:
        yield

    return spoilt


def _forgetting_the_line(turn: Any) -> Any:
    """The line is forgotten with the first answer, whoever stands in it."""

    @asynccontextmanager
    async def spoilt(self: Any, key: Any) -> Any:
        try:
            async with turn(self, key):
                yield
        finally:
            self._lines.pop(key, None)
            self._lines.setdefault(key, persister._Line()).length += 1

    return spoilt


def _never_leaving_the_line(turn: Any) -> Any:
    """Who goes away before its turn stays in the line."""

    @asynccontextmanager
    async def spoilt(self: Any, key: Any) -> Any:
        had_its_turn = False
        try:
            async with turn(self, key):
                had_its_turn = True
                yield
        finally:
            if not had_its_turn:
                self._lines.setdefault(key, persister._Line()).length += 1

    return spoilt


def _without_a_second_look(_: Any) -> Any:
    async def spoilt(self: Any, key: Any) -> int:
        found: int = self._where.coordinator_of(key)
        if found == persister.NO_COORDINATOR:
            await self._where.ensure_topic()
        return found if found == 0 or self._elsewhere.is_reachable(found) else persister.NO_COORDINATOR

    return spoilt


def _counting_all(pause: Any) -> Any:
    async def spoilt(self: Any, duration_ms: int) -> bool:
        await pause(self, duration_ms)
        return True

    return spoilt


def _counting_none(pause: Any) -> Any:
    async def spoilt(self: Any, duration_ms: int) -> bool:
        await pause(self, duration_ms)
        return False

    return spoilt


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
    Bug("questions do not wait for their turn", Persister, "_turn", _without_turns),
    Bug("the line is forgotten too early", Persister, "_turn", _forgetting_the_line),
    Bug("who goes away stays in the line", Persister, "_turn", _never_leaving_the_line),
    Bug("the metadata is not looked at again", Persister, "_find", _without_a_second_look),
    Bug("news of coordinators are ignored", Persister, "look_again", lambda _: lambda self: None),
    Bug("attempts after news count", Persister, "_pause", _counting_all),
    Bug("no attempts count", Persister, "_pause", _counting_none),
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
        "_left_out",
        lambda _: lambda kind, question: kind.answer(None, None),
    ),
    Bug("errors in answers are not seen", questions, "error_of", lambda _: lambda code: ErrorCode.NONE),
    Bug(
        "a share partition is in a request twice",
        broker_queues.BrokerQueues,
        "_next_batch",
        lambda _: lambda self, waiting: [waiting.popleft() for _ in range(len(waiting))],
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
async def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(bug.where, bug.attribute)
    monkeypatch.setattr(bug.where, bug.attribute, bug.spoil(right))

    with pytest.raises(AssertionError):
        for seed in range(LIVES_TO_FIND_A_BUG):
            await PersisterModel.life(seed, STEPS)
