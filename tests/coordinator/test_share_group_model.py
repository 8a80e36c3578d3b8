"""Random lives of a share group by seed, and bugs planted on purpose that they must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core import deletion, following, transitions
from pykafka_broker.coordinator.groups.core.share import heartbeat, initializing, target
from pykafka_broker.coordinator.groups.core.share import kind as share_kind
from pykafka_broker.coordinator.groups.core.share.assignors import simple, simple_mixed
from pykafka_broker.coordinator.groups.core.share.kind import ShareKind
from pykafka_broker.coordinator.groups.core.share.turn import ShareTurn
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.planted_bug import Bug
from tests.support.share_group_model import ShareCluster

SEEDS = range(30)
STEPS = 200
LIVES_TO_FIND_A_BUG = 40


@pytest.mark.parametrize("seed", SEEDS)
def test_share_groups_hold_whatever_happens(seed: int) -> None:
    cluster = ShareCluster(seed)
    for _ in range(STEPS):
        cluster.step()
    cluster.settle()


def _instead(wrong: Any) -> Callable[[Any], Any]:
    return lambda _: wrong


def _nothing_happens(groups: Any, *_: Any) -> Step[Any]:
    return Step(groups)


def _nothing_forgotten(self: Any, group: Any, *_: Any) -> Any:
    return group, []


def _topics_alone(groups: Any, event: Any) -> Step[Any]:
    return Step(groups._replace(topics=event.topics))


def _without_bump(right: Any) -> Any:
    def wrong(turn: ShareTurn, *, always: bool) -> bool:
        return False if always else right(turn, always=always)

    return wrong


def _failed_counts_as_done(right: Any) -> Any:
    return lambda groups, event, config, failed: right(groups, event, config, failed=False)


def _never_again(right: Any) -> Any:
    def wrong(turn: ShareTurn) -> Any:
        states = turn.group.states
        return {} if states is not None and states.initializing else right(turn)

    return wrong


def _sessions_forgotten(right: Any) -> Any:
    return lambda self, group, now_ms, config: (right(self, group, now_ms, config)[0], [])


BUGS = [
    Bug("epochs are not looked at", heartbeat, "check_epoch", _instead(lambda *_: None)),
    Bug("a full group takes more", heartbeat, "check_room", _instead(lambda *_: None)),
    Bug("sessions are not extended", ShareTurn, "reset_session", _instead(lambda *_: None)),
    Bug("sessions never end", transitions.TIMERS, "share-session", _instead(_nothing_happens)),
    Bug(
        "heartbeats have never any news",
        heartbeat,
        "is_without_news",
        _instead(lambda group, event: event.member_id in group.members and event.member_epoch > 0),
    ),
    Bug("the group does not move on when members change", ShareTurn, "bump_epoch", _without_bump),
    Bug(
        "states that are there start no target",
        heartbeat,
        "is_assignment_pending",
        _instead(lambda *_: False),
    ),
    Bug("no states are asked for", heartbeat, "initialize_subscribed", _instead(lambda _: None)),
    Bug(
        "states that are made stay initializing", initializing, "without", _instead(lambda topics, _: topics)
    ),
    Bug("refused states count as made", initializing, "noted", _failed_counts_as_done),
    Bug("a lost answer is waited for forever", initializing, "missing_states", _never_again),
    Bug(
        "members do not take up their target",
        heartbeat,
        "reconcile",
        _instead(lambda turn, member, target, changed_subscription: member),
    ),
    Bug("partitions of other topics are kept", target, "of_subscribed", _instead(lambda given, *_: given)),
    Bug("partitions get one member too few", simple, "desired_sharing", lambda right: lambda *_: 1),
    Bug(
        "mixed groups leave out the first partition",
        simple_mixed,
        "desired_counts",
        lambda right: lambda members, partitions: [max(count - 1, 0) for count in right(members, partitions)],
    ),
    Bug("changes of topics are not noticed", following, "on_topics_changed", _instead(_topics_alone)),
    Bug("deleted topics are remembered", ShareKind, "forget_topics", _instead(_nothing_forgotten)),
    Bug("sessions are forgotten by a new coordinator", ShareKind, "on_loaded", _sessions_forgotten),
    Bug("empty groups go by themselves", ShareKind, "expires", _instead(lambda *_: True)),
    Bug(
        "a group goes though its states do not",
        share_kind,
        "error_of_deletion",
        _instead(lambda _: ErrorCode.NONE),
    ),
    Bug("a group with members goes", deletion, "deletion_error", _instead(lambda _: ErrorCode.NONE)),
    Bug(
        "members that left stay",
        heartbeat,
        "member_tombstones",
        lambda right: lambda *names: right(*names)[:2],
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises((AssertionError, KeyError)):
        for seed in range(LIVES_TO_FIND_A_BUG):
            cluster = ShareCluster(seed)
            for _ in range(STEPS):
                cluster.step()
            cluster.settle()
