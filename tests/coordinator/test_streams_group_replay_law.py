"""The law of every core, for a streams group that may give way to another kind: folding the emitted records
from nothing gives the durable part of the state, whatever was asked in whatever order; and so does loading
only the newest record of each key. With it goes what members may count on.

Bugs planted on purpose show that it can be broken.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core import following, record, records, transitions
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.events import DeleteGroup, TopicsDeleted
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import Record, encode_record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.streams import handlers
from pykafka_broker.coordinator.groups.core.streams.kind import StreamsKind
from pykafka_broker.coordinator.groups.core.streams.state import MemberState, StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import build_batch
from tests.support.members import Member
from tests.support.planted_bug import Bug
from tests.support.streams_shard import READING, StreamsShard

SEEDS = range(30)
STEPS = 120
LIVES_TO_FIND_A_BUG = 40
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 45_000, 20_000
COUNTING = Topology(
    0,
    (
        Subtopology("0", ("t",), repartition_sink_topics=("by-key",)),
        Subtopology(
            "1",
            state_changelog_topics=(InternalTopic("counts"),),
            repartition_source_topics=(InternalTopic("by-key"),),
        ),
    ),
)
NAMES = ("t", "by-key", "counts")
#: The largest number of partitions of a topic.
MOST = 4


def kept(group: object) -> object:
    """What survives of a group."""
    if not isinstance(group, StreamsGroup):
        assert isinstance(group, ClassicGroup)
        return type(group), group.group_id
    return group._replace(
        configured=None,
        refresh_deadline_ms=0,
        is_delayed=False,
        shutdown_member_id=None,
        endpoint_information_epoch=0,
    )


class RandomStreams:
    """One group, four clients that say anything at any time, and the law after each step."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        settings = StreamsGroupSettings(
            initial_rebalance_delay_ms=self.rng.choice([0, 3_000]),
            assignment_interval_ms=self.rng.choice([0, 500]),
            num_standby_replicas=self.rng.choice([0, 1]),
            max_size=3,
        )
        self.topology = self.rng.choice([READING, COUNTING])
        self.world = StreamsShard(GroupCoordinatorConfig(streams_group=settings))
        #: Sizes and generations of the topics: one that is deleted and made again has another id.
        self.sizes: dict[str, tuple[int, int]] = dict.fromkeys(NAMES, (2, 0))
        self.made = 0
        #: When each member was last heard of.
        self.heard_ms: dict[str, int] = {}
        self.publish()

    def publish(self) -> None:
        self.world.set_topics(
            *(
                TopicInfo(name, name.encode().ljust(15, b".") + bytes([made]), size)
                for name, (size, made) in self.sizes.items()
            )
        )

    def step(self) -> None:
        who = self.rng.choice("abcd")
        match self.rng.choice(WHAT_HAPPENS):
            case "join":
                joining = partial(self.world.join_streams, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
                self.say(joining, who, self.topology)
            case "beat" if self.is_member(who):
                self.say(self.world.beat, who)
            case "own" if self.is_member(who):
                self.say(self.world.beat_owning, who)
            case "confused":
                self.say(self.world.stream, who, self.rng.randint(-2, 5))
            case "leave":
                self.world.stream(who, -1)
            case "wait":
                self.world.advance(self.rng.choice([1, 400, 600, 3_000, 20_000, 50_000]))
            case "grow":
                self.grow(self.rng.choice(NAMES))
            case "lose":
                self.lose(self.rng.choice(NAMES))
            case "commit":
                self.commit(who)
            case "delete":
                self.world.ask(DeleteGroup, "g")
            case "classic":
                self.world.join("g")
            case "move":
                self.world = self.world.reload()
                self.heard_ms = dict.fromkeys(self.heard_ms, self.world.now_ms)
        self.check()

    def say(self, beat: Callable[..., Any], who: str, *said: Any) -> None:
        if beat(who, *said).error_code is ErrorCode.NONE:
            self.heard_ms[who] = self.world.now_ms

    def is_member(self, who: str) -> bool:
        group = self.world.state.streams("g")
        return group is not None and who in group.members

    def grow(self, name: str) -> None:
        if name not in self.sizes:
            self.made += 1
        before, made = self.sizes.get(name, (0, self.made))
        size = self.rng.randint(1, MOST)
        # All in step, as an application needs them.
        self.sizes[name] = max(size, before), made
        for other in NAMES if self.rng.random() < 0.8 else ():
            self.sizes[other] = self.sizes[name][0], self.sizes.get(other, (0, self.made))[1]
        self.publish()

    def lose(self, name: str) -> None:
        topic = self.world.state.topics.topic(name)
        if topic is not None:
            del self.sizes[name]
            self.publish()
            self.world.submit(TopicsDeleted(((name, topic.topic_id),), self.world.now_ms))

    def commit(self, who: str) -> None:
        member = Member(who, self.world.epoch_of(who)) if self.is_member(who) else Member("", -1)
        self.world.commit({("t", 0): self.rng.randint(0, 99)}, member, version=9)

    def settle(self) -> None:
        """Everything that is needed is there, and everyone does what it is told."""
        self.sizes = {name: (MOST, made) for name, (_, made) in self.sizes.items()}
        for name in NAMES:
            self.sizes.setdefault(name, (MOST, self.made))
        self.publish()
        members = [who for who in "abcd" if self.is_member(who)]
        for _ in range(12):
            self.world.advance(1_000)
            for who in members:
                self.say(self.world.beat_owning, who)
        self.check()
        if members:
            self.check_settled()

    # ---- what must be true ----

    def check(self) -> None:
        self.check_law()
        group = self.world.state.streams("g")
        if group is None:
            return
        assert len(group.members) <= 3, "the group is larger than it may be"
        assert set(group.targets) <= set(group.members), "a target is of nobody"
        assert group.assignment_epoch <= group.group_epoch
        for name, member in group.members.items():
            assert member.member_epoch <= group.assignment_epoch
            timers = self.world.timers
            assert timers[("streams-session", "g", name)] == self.heard_ms[name] + SESSION_TIMEOUT_MS
            is_revoking = member.state is MemberState.UNREVOKED_TASKS
            assert (("streams-revocation", "g", name) in timers) == is_revoking, name

    def check_law(self) -> None:
        entries = [
            (0, *encode_record(entry), ())
            for entry in self.world.log
            if isinstance(entry, (Record, OffsetRecord))
        ]
        loader = Loader()
        loader.add(build_batch(entries) if entries else b"")
        state = {name: kept(group) for name, group in self.world.state.groups.items()}
        for read_back in (replay(self.world.log), loader.state()):
            assert {name: kept(group) for name, group in read_back.groups.items()} == state
            assert dict(read_back.consumer_group_ids) == dict(self.world.state.consumer_group_ids)
            assert read_back.offsets == self.world.state.offsets

    def check_settled(self) -> None:
        group = self.world.streams_group()
        active = [
            (part, partition)
            for member in group.members.values()
            for part, epochs in member.assigned.active.items()
            for partition in epochs
        ]
        parts = [part.subtopology_id for part in self.topology.subtopologies]
        assert sorted(active) == [(part, partition) for part in parts for partition in range(MOST)]
        assert {member.member_epoch for member in group.members.values()} == {group.group_epoch}


WHAT_HAPPENS = [
    *["join"] * 4,
    *["beat"] * 4,
    *["own"] * 6,
    *["wait"] * 4,
    *["leave", "grow", "commit", "confused"] * 2,
    "lose",
    "delete",
    "classic",
    "move",
]


def live(seed: int) -> None:
    streams = RandomStreams(seed)
    for _ in range(STEPS):
        streams.step()
    streams.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_groups_hold_whatever_happens(seed: int) -> None:
    live(seed)


# ---- planted bugs ----


def _instead(wrong: Any) -> Callable[[Any], Any]:
    return lambda _: wrong


def _nothing_happens(groups: Groups, *_: Any) -> Step[Groups]:
    return Step(groups)


def _topics_alone(groups: Groups, event: Any) -> Step[Groups]:
    return Step(groups._replace(topics=event.topics))


def _without_type(number: int) -> Callable[[Any], Any]:
    return lambda types: {key: value for key, value in types.items() if key != number}


def _records_forgotten(right: Any) -> Any:
    def wrong(groups: Groups, before: Any, step: Any) -> Any:
        return right(groups, before, step)._replace(records=step.records[1:])

    return wrong


BUGS = [
    Bug("sessions never end", transitions.TIMERS, "streams-session", _instead(_nothing_happens)),
    Bug("slow members stay", transitions.TIMERS, "streams-revocation", _instead(_nothing_happens)),
    Bug(
        "the first assignment is waited for forever",
        transitions.TIMERS,
        "streams-initial-rebalance",
        _instead(_nothing_happens),
    ),
    Bug("changes of topics are not noticed", following, "on_topics_changed", _instead(_topics_alone)),
    Bug("internal topics do not matter", StreamsKind, "looks_at", _instead(StreamsKind.is_subscribed_to)),
    Bug(
        "sessions are forgotten by a new coordinator",
        StreamsKind,
        "on_loaded",
        _instead(lambda self, group, now_ms, config: (group, [])),
    ),
    Bug("a group with members goes", StreamsKind, "is_empty", _instead(lambda *_: True)),
    Bug("nothing says that a group is gone", StreamsKind, "tombstones", _instead(lambda *_: [])),
    Bug("a record is not written", handlers, "put_back", _records_forgotten),
    Bug("a classic group stays beside its successor", handlers, "group_tombstone", _instead(lambda _: None)),
    *(
        Bug(f"records of type {number} are not read", record, "RECORD_TYPES", _without_type(number))
        for number in (17, 19, 20, 21, 22, 23)
    ),
    Bug(
        "records are read as those of another kind",
        records,
        "BY_KEY",
        lambda by_key: {key: (ClassicGroup, each[1]) for key, each in by_key.items()},
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises((AssertionError, AttributeError, KeyError)):
        for seed in range(LIVES_TO_FIND_A_BUG):
            live(seed)
