"""Ten thousand random steps of classic groups by seed, and bugs planted on purpose that they must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core import transitions
from pykafka_broker.coordinator.groups.core.classic import join, kind, leave, rebalance, sync, turn
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.machine.step import Step
from tests.support.classic_model import World
from tests.support.planted_bug import Bug

SEEDS = range(20)
STEPS = 500
#: How many lives of the world the rarest of the planted bugs may take to show.
LIVES_TO_FIND_A_BUG = 60


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_hold_whatever_their_members_do(seed: int) -> None:
    world = World(seed)
    world.run(STEPS)

    assert world.shares > 20, "too little has happened to prove anything"
    assert world.generation > 5


def _nothing(_: Any) -> Any:
    return lambda *_args: None


def _no_timer(name: str) -> Callable[[Any], Any]:
    """The timers whose key begins with `name` are not set."""

    def spoil(right: Any) -> Any:
        return lambda self, key, delay_ms: None if key[0] == name else right(self, key, delay_ms)

    return spoil


def _same_generation(right: Any) -> Any:
    def spoilt(turn_: Any) -> None:
        before = turn_.group.generation
        right(turn_)
        turn_.group = turn_.group._replace(generation=before)

    return spoilt


def _gives_leaders_share(right: Any) -> Any:
    def spoilt(group: ClassicGroup, member: Any) -> Any:
        return right(group, group.members[group.leader_id or member.member_id])

    return spoilt


def _keeps_leader(right: Any) -> Any:
    """Who does not come back leads on."""

    def spoilt(turn_: Any, member_id: str) -> None:
        leader_id = turn_.group.leader_id
        right(turn_, member_id)
        if turn_.group.members:
            turn_.group = turn_.group._replace(leader_id=leader_id)

    return spoilt


def _knows_only_members(right: Any) -> Any:
    """Whether an instance has been taken over is not looked at."""
    return lambda group, member_id, _, generation: right(group, member_id, None, generation)


BUGS = [
    Bug("a given id is never withdrawn", turn.Turn, "set_timer", _no_timer("session")),
    Bug("a rebalance never ends by itself", turn.Turn, "set_timer", _no_timer("join")),
    Bug("members that do not sync are not dropped", turn.Turn, "set_timer", _no_timer("sync")),
    Bug("sessions are not renewed", turn.Turn, "reset_session", _nothing),
    Bug("an assignment is not written", turn.Turn, "write_group", _nothing),
    Bug("the generation stays", rebalance, "complete_join", _same_generation),
    Bug("every member gets the leader's share", sync, "synced", _gives_leaders_share),
    Bug("a leader that is gone leads on", rebalance, "remove_member", _keeps_leader),
    Bug("a full group takes more", join, "has_room", lambda _: lambda *_: True),
    Bug("a former self may commit", kind, "sender_error", _knows_only_members),
    Bug("the others are not told who leaves", leave, "prepare_rebalance", _nothing),
    Bug(
        "any generation may commit",
        kind.ClassicKind,
        "commit_error",
        lambda right: (
            lambda self, group, event: right(self, group, event._replace(generation=group.generation))
        ),
    ),
    Bug(
        "a silent member stays",
        transitions,
        "TIMERS",
        lambda right: {**right, "session": lambda groups, *_: Step(groups)},
    ),
    Bug(
        "a restarted leader is not told that the assignment stands",
        join,
        "welcome_back",
        lambda right: lambda *who, **told: right(*who, **told)._replace(skip_assignment=False),
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(LIVES_TO_FIND_A_BUG):
            World(seed).run(STEPS)
