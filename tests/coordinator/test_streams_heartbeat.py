"""StreamsGroupHeartbeat: joining, staying, leaving, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core.config import StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.streams import checks, heartbeat, leaving, target
from pykafka_broker.coordinator.groups.core.streams.events import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
)
from pykafka_broker.coordinator.groups.core.streams.records import apply
from pykafka_broker.coordinator.groups.core.streams.state import (
    Endpoint,
    GroupState,
    MemberState,
    StreamsGroup,
    TaskHolders,
)
from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.tasks import Tasks, task_ids
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.streams.turn import StreamsTurn
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from pykafka_broker.machine.step import CancelTimer, Reply, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import group as m

READING = Topology(0, (Subtopology("0", ("in",)),))
COUNTING = Topology(
    0,
    (
        Subtopology("0", ("in",), repartition_sink_topics=("by-key",)),
        Subtopology(
            "1",
            repartition_source_topics=(InternalTopic("by-key"),),
            state_changelog_topics=(InternalTopic("counts"),),
        ),
    ),
)
READABLE = {"in": 4}
COUNTABLE = {"in": 4, "by-key": 4, "counts": 4}
AT_ONCE = StreamsGroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)
NOTHING: dict[str, Any] = {
    "active_tasks": (),
    "standby_tasks": (),
    "warmup_tasks": (),
}


def some(*partitions: int) -> dict[str, frozenset[int]]:
    return {"0": frozenset(partitions)}


class World:
    """One group, its clock, its timers and its topics."""

    def __init__(
        self, settings: StreamsGroupSettings = AT_ONCE, topics: Mapping[str, int] = READABLE
    ) -> None:
        self.settings = settings
        self.group: StreamsGroup | None = None
        self.log: list[Record] = []
        self.timers: dict[tuple[str, ...], int] = {}
        self.now_ms = 1_000_000
        self.topics = Topics()
        self.set_topics(topics)

    def set_topics(self, counts: Mapping[str, int]) -> None:
        self.topics = Topics(
            {name: TopicInfo(name, name.encode().ljust(16), count) for name, count in counts.items()}
        )
        if self.group is not None:
            self.group = self.group._replace(refresh_deadline_ms=0)

    @property
    def known(self) -> StreamsGroup:
        assert self.group is not None
        return self.group

    def take(self, step: Step[StreamsGroup | None]) -> StreamsGroupHeartbeatResult | None:
        """Do what was decided; the answer, if there is one."""
        self.group = step.state
        answer = None
        for record in step.records:
            assert isinstance(record, Record)
            self.log.append(record)
        for effect in step.effects:
            match effect:
                case Reply(result=result):
                    assert isinstance(result, StreamsGroupHeartbeatResult)
                    answer = result
                case SetTimer(key=key, at_ms=at_ms):
                    assert isinstance(key, tuple)
                    self.timers[key] = at_ms
                case CancelTimer(key=key):
                    assert isinstance(key, tuple)
                    self.timers.pop(key, None)
        return answer

    def say(self, member_id: str, member_epoch: int, **said: Any) -> StreamsGroupHeartbeatResult:
        event = StreamsGroupHeartbeat(1, self.now_ms, "g", member_id, member_epoch, "client", "/host", **said)
        before = self.group
        step = heartbeat.on_heartbeat(self.group, event, self.topics, self.settings)
        answer = self.take(step)
        assert answer is not None
        if answer.error_code is not ErrorCode.NONE:
            assert (self.group, step.records) == (before, ()), "a refused request changes something"
        return answer

    def join(self, member_id: str, topology: Topology = READING, **said: Any) -> StreamsGroupHeartbeatResult:
        given = {"rebalance_timeout_ms": 60_000, "process_id": f"p-{member_id}", **NOTHING, **said}
        return self.say(member_id, 0, topology=topology, **given)

    def beat(self, member_id: str, **said: Any) -> StreamsGroupHeartbeatResult:
        return self.say(member_id, self.known.members[member_id].member_epoch, **said)

    def beat_owning(self, member_id: str) -> StreamsGroupHeartbeatResult:
        """A heartbeat of a member that has what it was told to have."""
        assigned = self.known.members[member_id].assigned
        roles = (assigned.active, assigned.standby, assigned.warmup)
        said = [tuple((name, tuple(sorted(role[name]))) for name in sorted(role)) for role in roles]
        return self.beat(member_id, **dict(zip(NOTHING, said, strict=True)))

    def sleep(self, ms: int) -> None:
        """Time passes; timers fire in their order."""
        until = self.now_ms + ms
        while self.timers and min(self.timers.values()) <= until:
            key = min(self.timers, key=self.timers.__getitem__)
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.fire(key)
        self.now_ms = until

    def fire(self, key: tuple[str, ...]) -> None:
        now = (self.topics, self.settings, self.now_ms)
        match key:
            case ("streams-session", "g", member_id):
                self.take(leaving.on_session_timer(self.group, member_id, *now))
            case ("streams-revocation", "g", member_id):
                self.take(leaving.on_revocation_timer(self.group, member_id, *now))
            case ("streams-initial-rebalance", "g"):
                self.take(target.on_initial_rebalance_timer(self.group, *now))
            case _:
                raise AssertionError(key)

    def check_law(self) -> None:
        """Folding the records gives the durable part of the group."""
        folded: StreamsGroup | None = None
        for record in self.log:
            folded = apply(folded, record)
        assert folded == (None if self.group is None else durable(self.group))

    def check_members(self) -> None:
        """No two members have the same active task, and timers run for members only."""
        members = self.known.members if self.group is not None else {}
        active = [
            task
            for member in members.values()
            for tasks in (member.assigned, member.pending_revocation)
            for task in task_ids(tasks.active)
        ]
        assert len(set(active)) == len(active), "a task is active twice"
        whose = {key[2] for key in self.timers if len(key) == 3}
        assert whose <= set(members), "a timer runs for nobody"


def durable(group: StreamsGroup) -> StreamsGroup:
    return group._replace(
        configured=None,
        refresh_deadline_ms=0,
        is_delayed=False,
        shutdown_member_id=None,
        endpoint_information_epoch=0,
    )


def written(world: World, since: int = 0) -> list[str]:
    """The kinds of records, short."""
    return [
        type(record.key).__name__.removeprefix("StreamsGroup").removesuffix("Key")
        + ("" if record.value is not None else " gone")
        for record in world.log[since:]
    ]


# ---- joining and staying ----


def test_a_member_joins_and_gets_all_tasks() -> None:
    world = World()

    answer = world.join("a")

    assert answer == StreamsGroupHeartbeatResult(
        member_id="a", member_epoch=2, heartbeat_interval_ms=5_000, tasks=Tasks(some(0, 1, 2, 3))
    )
    assert written(world) == [
        "MemberMetadata",
        "Topology",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert world.timers == {("streams-session", "g", "a"): world.now_ms + 45_000}
    world.check_law()


def test_a_heartbeat_without_news_writes_nothing() -> None:
    world = World()
    world.join("a")
    count = len(world.log)

    answer = world.beat("a")

    assert answer == StreamsGroupHeartbeatResult(member_id="a", member_epoch=2, heartbeat_interval_ms=5_000)
    assert len(world.log) == count


def test_the_first_assignment_of_a_group_waits_for_more_members() -> None:
    world = World(StreamsGroupSettings())

    answer = world.join("a")
    assert answer.member_epoch == 1
    assert answer.tasks == Tasks()
    assert answer.statuses == (
        Status(
            StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay."
        ),
    )
    world.join("b")
    world.sleep(2_999)
    assert world.known.targets == {}
    world.sleep(1)
    assert {name: sum(map(len, tasks.active.values())) for name, tasks in world.known.targets.items()} == {
        "a": 2,
        "b": 2,
    }
    assert world.beat("a").tasks == world.known.targets["a"]
    world.check_law()


def test_a_member_alone_gets_its_first_tasks_by_the_heartbeat_after_the_delay() -> None:
    world = World(StreamsGroupSettings())
    world.join("a")

    world.sleep(5_000)
    assert world.known.targets == {}, "nobody has looked at the topics since the group was written"

    assert world.beat("a").tasks == Tasks(some(0, 1, 2, 3))


def test_the_next_assignment_waits_for_the_assignment_interval() -> None:
    world = World(AT_ONCE._replace(assignment_interval_ms=1_000))
    world.join("a")

    answer = world.join("b")
    assert answer.statuses == (
        Status(
            StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval."
        ),
    )
    assert (answer.member_epoch, answer.tasks) == (2, Tasks())
    world.sleep(1_000)
    world.beat("b")
    assert world.known.assignment_epoch == world.known.group_epoch == 3
    world.check_law()


def test_tasks_move_to_a_second_member_once_the_first_has_given_them_up() -> None:
    world = World()
    world.join("a")

    joined = world.join("b")
    assert (joined.member_epoch, joined.tasks, world.known.state) == (3, Tasks(), GroupState.RECONCILING)
    told = world.beat("a")
    assert (told.member_epoch, told.tasks) == (2, Tasks(some(0, 1)))
    assert world.timers[("streams-revocation", "g", "a")] == world.now_ms + 60_000
    done = world.beat_owning("a")
    assert (done.member_epoch, done.tasks) == (3, None)
    assert ("streams-revocation", "g", "a") not in world.timers
    assert world.beat("b").tasks == Tasks(some(2, 3))
    assert world.known.state is GroupState.STABLE
    world.check_law()


def test_a_member_that_does_not_give_up_its_tasks_is_expelled() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.beat("a")

    for _ in range(3):
        world.sleep(20_000)
        for name in set(world.known.members):
            world.beat(name)

    assert set(world.known.members) == {"b"}
    assert world.beat("b").tasks in (None, Tasks(some(0, 1, 2, 3)))
    world.check_law()


def test_a_silent_member_is_expelled_and_its_tasks_go_to_the_others() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.sleep(30_000)
    world.beat("b")
    count = len(world.log)

    world.sleep(15_000)

    assert written(world, count) == [
        "CurrentMemberAssignment gone",
        "TargetAssignmentMember gone",
        "MemberMetadata gone",
        "Metadata",
    ]
    assert world.beat("b").tasks == Tasks(some(0, 1, 2, 3))
    world.check_law()


def test_a_member_leaves() -> None:
    world = World()
    world.join("a")

    answer = world.say("a", -1)

    assert answer == StreamsGroupHeartbeatResult(member_id="a", member_epoch=-1)
    assert world.known.state is GroupState.EMPTY
    assert world.timers == {}
    world.check_law()


def test_standbys_follow_the_setting_which_may_change() -> None:
    world = World(AT_ONCE, COUNTABLE)
    world.join("a", COUNTING)
    world.join("b", COUNTING)
    world.beat("a")
    world.beat_owning("a")
    epoch = world.known.group_epoch

    world.settings = AT_ONCE._replace(num_standby_replicas=1)
    world.beat("a")

    assert world.known.group_epoch == epoch + 1
    assert world.known.last_assignment_configs == (("num.standby.replicas", "1"),)
    assert [sum(map(len, tasks.standby.values())) for tasks in world.known.targets.values()] == [2, 2]
    world.check_law()


# ---- topics ----


def test_internal_topics_are_asked_for_until_they_exist() -> None:
    world = World()

    answer = world.join("a", COUNTING)

    assert [topic.name for topic in answer.internal_topics] == ["by-key", "counts"]
    assert answer.statuses == (
        Status(StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: by-key, counts"),
    )
    assert (answer.tasks, world.known.state) == (Tasks(), GroupState.NOT_READY)
    world.set_topics(COUNTABLE)
    answer = world.beat("a")
    assert answer.statuses == ()
    assert answer.tasks == Tasks({"0": frozenset(range(4)), "1": frozenset(range(4))})
    assert world.known.state is GroupState.STABLE
    world.check_law()


def test_tasks_are_taken_away_when_a_source_topic_goes() -> None:
    world = World()
    world.join("a")

    world.set_topics({})
    answer = world.beat("a")

    assert answer.statuses == (Status(StatusCode.MISSING_SOURCE_TOPICS, "Source topics in are missing."),)
    assert answer.tasks == Tasks()
    assert world.known.members["a"].state is MemberState.UNREVOKED_TASKS
    world.check_law()


def test_more_partitions_are_more_tasks() -> None:
    world = World()
    world.join("a")

    world.set_topics({"in": 6})

    assert world.beat("a").tasks == Tasks(some(*range(6)))
    world.check_law()


# ---- topologies ----


def test_a_member_with_an_older_topology_is_told_and_takes_part() -> None:
    world = World()
    world.join("a", READING._replace(epoch=2))

    answer = world.join("b", COUNTING._replace(epoch=1))

    assert answer.statuses == (
        Status(
            StatusCode.STALE_TOPOLOGY,
            "The member's topology epoch 1 is behind the group's topology epoch 2.",
        ),
    )
    assert world.known.topology == READING._replace(epoch=2)


def test_a_topology_is_not_replaced() -> None:
    world = World()
    world.join("a")

    for topology in (COUNTING, READING._replace(epoch=1)):
        answer = world.join("b", topology)
        assert answer.error_code is ErrorCode.INVALID_REQUEST
        assert answer.error_message == "Topology updates are not supported yet."


# ---- endpoints, shutdown ----


def test_members_learn_of_each_others_endpoints() -> None:
    world = World()
    here = Endpoint("here", 1)
    first = world.join("a", user_endpoint=here)
    assert first.endpoint_information_epoch == 0
    assert first.endpoints is not None
    assert first.endpoints[0].endpoint == here
    assert world.beat("a").endpoints is None

    world.join("b", user_endpoint=Endpoint("there", 2))
    told = world.beat("a")

    assert told.endpoint_information_epoch == 2
    assert told.endpoints is not None
    assert [each.endpoint.host for each in told.endpoints] == ["there", "here"]
    assert told.endpoints[1].active == (("in", (0, 1)),)
    assert world.beat("a", endpoint_information_epoch=2).endpoints is None


def test_a_request_to_shut_down_reaches_all_members() -> None:
    world = World()
    world.join("a")
    world.join("b")

    world.say("a", -1, shutdown_application=True)

    assert world.beat("b").statuses == (
        Status(
            StatusCode.SHUTDOWN_APPLICATION,
            "Streams group member a encountered a fatal error and requested a shutdown for the entire "
            "application.",
        ),
    )
    world.say("b", -1)
    assert world.join("c").statuses == ()


# ---- refusals ----


REFUSED: list[tuple[str, int, dict[str, Any], str]] = [
    ("a", 0, {"instance_id": "pod"}, "Static membership is not yet supported."),
    ("a", 0, {"has_task_offsets": True}, "TaskOffsets are not supported yet."),
    ("a", 0, {"has_task_end_offsets": True}, "TaskEndOffsets are not supported yet."),
    ("a", 0, {"warmup_tasks": (("0", (1,)),)}, "WarmupTasks are not supported yet."),
    (" ", 0, {}, "MemberId can't be empty."),
    ("a", 0, {"rack_id": ""}, "RackId can't be empty."),
    ("a", 0, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
    ("a", 0, {"active_tasks": (("0", (1,)),)}, "ActiveTasks must be empty when (re-)joining."),
    ("a", 0, {"standby_tasks": None}, "StandbyTasks must be empty when (re-)joining."),
    ("a", 0, {"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
    ("a", 0, {"topology": None}, "Topology must be non-null when (re-)joining."),
    ("a", -2, {}, "InstanceId can't be null."),
    ("a", -3, {}, "MemberEpoch is -3, but must be greater than or equal to -2."),
    ("a", 2, {"warmup_tasks": None}, "If one task-type is non-null, all must be non-null."),
    ("a", 2, {}, "Topology can only be provided when (re-)joining."),
    (
        "a",
        0,
        {"topology": Topology(0, (Subtopology("0", (), ("in.*",)),))},
        "Regular expressions for source topics are not supported yet.",
    ),
]


@pytest.mark.parametrize(("member_id", "epoch", "said", "text"), REFUSED, ids=[row[3] for row in REFUSED])
def test_what_no_group_accepts_is_refused(
    member_id: str, epoch: int, said: dict[str, Any], text: str
) -> None:
    whole: dict[str, Any] = {"rebalance_timeout_ms": 1, "topology": READING, **NOTHING, **said}

    answer = World().say(member_id, epoch, **whole)

    assert answer == StreamsGroupHeartbeatResult(ErrorCode.INVALID_REQUEST, text)


def test_a_changelog_topic_does_not_choose_its_size() -> None:
    part = Subtopology("0", ("in",), state_changelog_topics=(InternalTopic("store", 3),))

    answer = World().join("a", Topology(0, (part,)))

    assert answer.error_code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert answer.error_message == (
        "Changelog topic store must have an undefined partition count, but it is set to 3."
    )


def test_a_name_that_occurs_twice_is_an_error_of_its_own() -> None:
    twice = Topology(0, (Subtopology("0", ("in",)), Subtopology("0", ("in",))))

    assert World().join("a", twice).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert World().join("a", READING._replace(epoch=-1)).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    store = InternalTopic("store")
    same_topic = Topology(0, (Subtopology("0", ("in",), state_changelog_topics=(store, store)),))
    assert World().join("a", same_topic).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    tags = (("zone", "a"), ("zone", "b"))
    assert World().join("a", client_tags=tags).error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_group_has_room_for_so_many() -> None:
    world = World(AT_ONCE._replace(max_size=1))
    world.join("a")

    for name in ("b", "a"):
        answer = world.join(name)
        assert answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert answer.error_message == "The streams group has reached its maximum capacity of 1 members."


def test_a_full_group_is_full_whatever_is_said() -> None:
    world = World(AT_ONCE._replace(max_size=1))
    world.join("a")

    assert world.join("b", READING._replace(epoch=-1)).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_may_say_that_it_is_in_another_process() -> None:
    world = World(AT_ONCE._replace(num_standby_replicas=1), COUNTABLE)
    world.join("a", COUNTING)
    world.join("b", COUNTING)
    world.beat("a")
    world.beat_owning("a")

    world.beat("b", process_id="p-c")

    assert set(world.known.holders.active.values()) == {"p-a", "p-c"}
    world.check_law()


def test_who_is_not_in_the_group_is_told() -> None:
    world = World()
    assert world.say("a", 1) == StreamsGroupHeartbeatResult(
        ErrorCode.GROUP_ID_NOT_FOUND, "Streams group g not found."
    )
    assert world.say("a", -1) == StreamsGroupHeartbeatResult(
        ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found."
    )
    world.join("a")
    for epoch in (1, -1):
        assert world.say("b", epoch) == StreamsGroupHeartbeatResult(
            ErrorCode.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."
        )


def test_a_member_in_a_wrong_epoch_is_fenced_but_may_repeat_its_last_heartbeat() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.beat("a")
    world.beat_owning("a")

    newer = world.say("a", 4)
    assert (newer.error_code, newer.error_message) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        "The streams group member has a greater member epoch (4) than the one known by the group coordinator "
        "(3). The member must abandon all its partitions and rejoin.",
    )
    owning = {**NOTHING, "active_tasks": (("0", (0, 1)),)}
    assert world.say("a", 2, **owning).error_code is ErrorCode.NONE
    for said in (
        {},
        {**NOTHING, "active_tasks": (("0", (0, 2)),)},
        {**NOTHING, "standby_tasks": (("0", (0,)),)},
    ):
        older = world.say("a", 2, **said)
        assert older.error_code is ErrorCode.FENCED_MEMBER_EPOCH
        assert older.error_message is not None
        assert "smaller member epoch (2)" in older.error_message


def test_a_member_has_no_tasks_that_do_not_exist() -> None:
    world = World()
    world.join("a")

    unknown = world.beat("a", **{**NOTHING, "active_tasks": (("7", (0,)),)})
    too_large = world.beat("a", **{**NOTHING, "standby_tasks": (("0", (3, 4)),)})

    assert unknown.error_message == "Subtopology 7 does not exist in the topology."
    assert too_large.error_message == (
        "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"
    )


def test_a_group_takes_the_place_of_an_empty_classic_one() -> None:
    tombstone = Record(m.GroupMetadataKey(group="g"), None)
    said: dict[str, Any] = {"rebalance_timeout_ms": 1, "topology": READING, "process_id": "p", **NOTHING}
    event = StreamsGroupHeartbeat(1, 0, "g", "a", 0, **said)

    step = heartbeat.on_heartbeat(None, event, World().topics, AT_ONCE, (tombstone,))

    assert step.records[0] is tombstone
    assert step.state is not None
    assert set(step.state.members) == {"a"}


# ---- random lives, and planted bugs ----


def live(seed: int) -> None:
    """Members come and go, are slow or silent; topics and settings change. The law holds at every step, and
    in the end all tasks are with someone.
    """
    rng = random.Random(seed)
    world = World(rng.choice([AT_ONCE, StreamsGroupSettings()]), COUNTABLE)
    for _ in range(50):
        names = sorted(world.known.members) if world.group is not None else []
        match rng.choice(["join", "join", "beat", "own", "own", "leave", "sleep", "grow", "standbys"]):
            case "join":
                world.join(
                    rng.choice("abcde"), COUNTING, process_id=rng.choice("xy"), user_endpoint=Endpoint("h", 1)
                )
            case "beat" if names:
                world.beat(rng.choice(names))
            case "own" if names:
                world.beat_owning(rng.choice(names))
            case "leave" if names:
                world.say(rng.choice(names), -1, shutdown_application=rng.random() < 0.2)
            case "sleep":
                world.sleep(rng.choice([500, 4_000, 30_000, 61_000]))
            case "grow":
                size = rng.choice([4, 4, 5])
                world.set_topics(dict.fromkeys(COUNTABLE, size))
            case "standbys":
                world.settings = world.settings._replace(num_standby_replicas=rng.randint(0, 2))
        world.check_law()
        world.check_members()
    world.set_topics(COUNTABLE)
    world.join("z", COUNTING)
    for _ in range(20):
        world.sleep(5_000)
        for name in sorted(world.known.members):
            world.beat(name)
            world.beat_owning(name)
    assert world.known.state is GroupState.STABLE
    owners = [
        (name, partition)
        for member in world.known.members.values()
        for name, epochs in member.assigned.active.items()
        for partition in epochs
    ]
    assert sorted(owners) == [(name, partition) for name in "01" for partition in range(4)]
    world.check_members()
    world.check_law()


@pytest.mark.parametrize("seed", range(25))
def test_random_lives_end_well(seed: int) -> None:
    live(seed)


def _nobody_waits(turn: Any, **values: Any) -> None:
    turn.soft(group_epoch=turn.group.group_epoch + 1, **values)


def _never_looks_again(turn: Any, topology: Any, _look: Any = heartbeat._configured) -> Any:
    return turn.group.configured or _look(turn, topology)


def _reads_no_timer(group: Any, *rest: Any) -> Any:
    return Step(group)


PLANTED: list[tuple[str, object, str, Callable[..., Any]]] = [
    ("an epoch is not written", StreamsTurn, "bump_epoch", _nobody_waits),
    ("timers are left behind", StreamsTurn, "cancel_timers", lambda turn, member_id: None),
    ("new topics are not seen", heartbeat, "_configured", _never_looks_again),
    ("silent members stay", leaving, "on_session_timer", _reads_no_timer),
    ("the first assignment waits forever", target, "on_initial_rebalance_timer", _reads_no_timer),
    ("nobody holds anything", TaskHolders, "replaced", lambda holders, before, after: holders),
    ("a member says nothing", heartbeat, "_as_said", lambda member, event: member),
]


@pytest.mark.parametrize(("bug", "owner", "name", "wrong"), PLANTED, ids=[bug[0] for bug in PLANTED])
def test_a_planted_bug_is_caught(
    bug: str, owner: object, name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)

    with pytest.raises((AssertionError, AttributeError, KeyError)):
        for seed in range(25):
            live(seed)
        test_the_first_assignment_of_a_group_waits_for_more_members()
        test_more_partitions_are_more_tasks()
        test_a_silent_member_is_expelled_and_its_tasks_go_to_the_others()


def test_the_epoch_a_member_may_repeat_is_checked_with_its_tasks() -> None:
    world = World()
    world.join("a")
    member = world.known.members["a"]._replace(previous_member_epoch=1)

    said = StreamsGroupHeartbeat(1, 0, "g", "a", 1, **NOTHING)

    checks.check_epoch(member, said)
