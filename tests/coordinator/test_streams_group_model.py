"""Members of a streams group on their way to their tasks: stories, random lives of an application, and bugs
planted on purpose that these must find.

That random steps are those of Apache Kafka is tested in interop/tests/test_streams_groups.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core.streams import reconciliation, records, state
from pykafka_broker.coordinator.groups.core.streams.assignor.spec import SubtopologySpec
from pykafka_broker.coordinator.groups.core.streams.endpoints import EndpointPartitions, endpoint_partitions
from pykafka_broker.coordinator.groups.core.streams.records import (
    apply,
    epoch_record,
    member_record,
    streams_group_tombstones,
    topology_record,
)
from pykafka_broker.coordinator.groups.core.streams.state import (
    Endpoint,
    GroupState,
    MemberState,
    StreamsGroup,
    StreamsMember,
    TaskHolders,
)
from pykafka_broker.coordinator.groups.core.streams.tasks import OwnedTasks, TaskId, Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.configured import configured
from pykafka_broker.coordinator.groups.core.streams.topology.declared import Subtopology, Topology
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from tests.support.streams_groups import StreamsWorld

#: How many lives of an application the rarest of the planted bugs may take to show.
LIVES = 60


def some(*partitions: int) -> dict[str, frozenset[int]]:
    return {"0": frozenset(partitions)}


def counting(tasks: int = 4, standbys: int = 0) -> StreamsWorld:
    return StreamsWorld({"0": SubtopologySpec(tasks, is_stateful=standbys > 0)}, standbys)


# ---- stories ----


def test_the_first_member_gets_all_tasks_at_once() -> None:
    world = counting()

    world.join("a", "x")

    member = world.known.members["a"]
    assert member.assigned == OwnedTasks({"0": dict.fromkeys(range(4), 2)})
    assert (member.member_epoch, member.previous_member_epoch, member.state) == (2, 0, MemberState.STABLE)


def test_a_second_one_waits_until_the_first_has_given_up_its_tasks() -> None:
    world = counting()
    world.join("a", "x")

    world.join("b", "y")
    assert world.known.members["b"].state is MemberState.UNRELEASED_TASKS
    assert world.clients["b"].owned == Tasks()

    world.beat("a")
    a = world.known.members["a"]
    assert (a.state, a.member_epoch) == (MemberState.UNREVOKED_TASKS, 2)
    assert a.pending_revocation == OwnedTasks({"0": {2: 2, 3: 2}})
    world.beat("b")
    assert world.clients["b"].owned == Tasks()

    world.clients["a"].give_up()
    world.beat("a")
    a = world.known.members["a"]
    assert (a.state, a.member_epoch) == (MemberState.STABLE, 3)
    assert a.assigned == OwnedTasks({"0": {0: 2, 1: 2}})
    world.beat("b")
    b = world.known.members["b"]
    assert (b.state, b.assigned) == (MemberState.STABLE, OwnedTasks({"0": {2: 3, 3: 3}}))


def test_a_member_that_does_not_say_what_it_runs_has_given_up_nothing() -> None:
    world = counting()
    world.join("a", "x")
    world.join("b", "y")
    world.beat("a")
    world.clients["a"].give_up()

    world.beat("a", says=False)

    assert world.known.members["a"].state is MemberState.UNREVOKED_TASKS


def test_a_standby_does_not_become_active_in_another_thread_before_it_is_given_up() -> None:
    holders = TaskHolders.none().replaced(
        None, StreamsMember("a", process_id="x", assigned=OwnedTasks(standby=some(0)))
    )
    member = StreamsMember("b", 1, process_id="x")

    waits = reconciliation.reconciled(member, reconciliation.Target(2, Tasks(some(0, 1)), holders), Tasks())
    elsewhere = reconciliation.reconciled(
        member._replace(process_id="y"), reconciliation.Target(2, Tasks(some(0, 1)), holders), Tasks()
    )

    assert (waits.state, waits.assigned) == (MemberState.UNRELEASED_TASKS, OwnedTasks({"0": {1: 2}}))
    assert (elsewhere.state, elsewhere.assigned) == (MemberState.STABLE, OwnedTasks({"0": {0: 2, 1: 2}}))


def test_the_state_of_a_group_shows_how_far_it_is() -> None:
    group = StreamsGroup.new("g")
    assert group.state is GroupState.EMPTY
    member = StreamsMember.joining("a")
    topology = Topology(0, (Subtopology("0", ("t",)),))

    group = group.with_member(member)
    assert group.state is GroupState.NOT_READY
    group = group._replace(topology=topology, validated_topology_epoch=-1)
    assert group.state is GroupState.NOT_READY
    group = group._replace(validated_topology_epoch=0, group_epoch=2)
    assert group.state is GroupState.ASSIGNING
    group = group._replace(assignment_epoch=2)
    assert group.state is GroupState.RECONCILING
    group = group.with_member(member._replace(member_epoch=2))
    assert group.state is GroupState.STABLE
    assert group.is_subscribed_to("t")
    assert not group.is_subscribed_to("u")
    assert not group.without_member("a").is_subscribed_to("t")


def test_a_request_to_shut_down_is_forgotten_with_the_last_member() -> None:
    group = StreamsGroup.new("g").with_member(StreamsMember("a")).with_member(StreamsMember("b"))
    group = group._replace(shutdown_member_id="a")

    assert group.without_member("a").shutdown_member_id == "a"
    assert group.without_member("a").without_member("b").shutdown_member_id is None


def test_a_static_member_is_known_by_its_instance_id() -> None:
    group = StreamsGroup.new("g").with_member(StreamsMember("a", instance_id="pod"))

    assert group.static_members == {"pod": "a"}
    assert group.without_member("a").static_members == {}


def test_a_deleted_group_leaves_nothing() -> None:
    world = counting()
    world.join("a", "x")
    world.write(topology_record("g", Topology(0, ())))
    group = world.known

    world.write(*streams_group_tombstones(group))

    assert world.group is None
    keys = {repr(record.key) for record in world.log if record.value is not None}
    assert keys == {repr(record.key) for record in streams_group_tombstones(group)}


def test_what_an_older_broker_left_out_is_filled_in() -> None:
    world = counting(2)
    world.join("a", "x")
    current = world.log[-1]
    value: Any = current.value
    value.active_tasks[0].assignment_epochs = []
    value.state = 9

    group = apply(None, current)

    assert group is not None
    member = group.members["a"]
    assert member.assigned == OwnedTasks({"0": {0: 2, 1: 2}})
    assert member.state is MemberState.UNKNOWN
    assert not group.holders.active, "the process is not known yet"
    group = apply(group, world.log[0])
    assert group is not None
    assert group.holders.active == {TaskId("0", 0): "x", TaskId("0", 1): "x"}


def test_endpoints_are_told_with_the_partitions_that_can_be_asked_for_there() -> None:
    topics = Topics(
        {name: TopicInfo(name, name.encode() * 16, count) for name, count in (("t", 3), ("u", 1))}
    )
    topology = Topology(0, (Subtopology("0", ("t", "u")),))
    here, there = Endpoint("here", 1), Endpoint("there", 2)
    sender = StreamsMember("a", user_endpoint=here, assigned=OwnedTasks({"0": {0: 1, 2: 1}}))
    other = StreamsMember("b", user_endpoint=there, assigned=OwnedTasks({"0": {1: 1}}, some(0)))
    group = StreamsGroup.new("g").with_member(StreamsMember("a")).with_member(other)
    group = group.with_member(StreamsMember("mute", assigned=OwnedTasks(standby=some(1))))
    group = group._replace(configured=configured(topology, topics, 0))

    told = endpoint_partitions(group, sender, topics)

    assert told == [
        EndpointPartitions(there, (("t", (1,)), ("u", (1,))), (("t", (0,)), ("u", (0,)))),
        EndpointPartitions(here, (("t", (0, 2)), ("u", (0,)))),
    ]
    assert endpoint_partitions(group._replace(configured=None), sender, topics) == [
        EndpointPartitions(there),
        EndpointPartitions(here),
    ]


# ---- random lives ----


def live(seed: int, steps: int = 60) -> None:
    """An application whose clients come, go, dawdle and grow; what must be true is, at every step."""
    rng = random.Random(seed)
    parts = {str(number): SubtopologySpec(rng.randint(1, 4), rng.random() < 0.7) for number in range(2)}
    world = StreamsWorld(parts, rng.randint(0, 2))
    for _ in range(steps):
        world.live(rng)
        world.check()
    world.check_law()
    world.settle()
    world.check()
    world.check_settled()
    world.check_law()


@pytest.mark.parametrize("seed", range(LIVES))
def test_no_task_is_ever_twice_and_all_are_run_in_the_end(seed: int) -> None:
    live(seed)


def test_metadata_of_a_member_may_change_while_it_has_tasks() -> None:
    world = counting(2)
    world.join("a", "x")
    member = world.known.members["a"]

    world.write(member_record("g", member._replace(process_id="z", client_tags=(("zone", "b"),))))

    assert world.known.holders.active == {TaskId("0", 0): "z", TaskId("0", 1): "z"}
    world.check_law()


def test_the_epoch_record_keeps_what_the_group_was_bumped_for() -> None:
    group = StreamsGroup.new("g")._replace(
        group_epoch=7,
        metadata_hash=-5,
        validated_topology_epoch=-1,
        last_assignment_configs=(("num.standby.replicas", "1"),),
    )

    assert apply(None, epoch_record(group)) == group


# ---- planted bugs ----


def _nothing_is_held(
    wanted: Any, has: Any, is_held: Callable[[TaskId], bool]
) -> tuple[dict[str, frozenset[int]], bool]:
    return reconciliation._less(wanted, has), False


def _all_is_held(
    wanted: Any, has: Any, is_held: Callable[[TaskId], bool]
) -> tuple[dict[str, frozenset[int]], bool]:
    return {}, bool(wanted)


def _revocation_is_believed(tasks: OwnedTasks, owned: Tasks) -> bool:
    return False


def _keeps_everything(some: Any, others: Any) -> dict[str, frozenset[int]]:
    return dict(some)


def _forgets_the_pending(before: Any) -> Any:
    def replaced(holders: TaskHolders, was: StreamsMember | None, now: StreamsMember | None) -> TaskHolders:
        without = None if now is None else now._replace(pending_revocation=OwnedTasks())
        result: TaskHolders = before(holders, was, without)
        return result

    return replaced


def _never_releases(before: Any) -> Any:
    def replaced(holders: TaskHolders, was: StreamsMember | None, now: StreamsMember | None) -> TaskHolders:
        result: TaskHolders = before(holders, None, now)
        return result

    return replaced


def _loses_standbys(
    active: Any, standby: Any, warmup: Any, member_epoch: int, _owned: Any = records._owned
) -> OwnedTasks:
    owned: OwnedTasks = _owned(active, standby, warmup, member_epoch)
    return owned._replace(standby={})


def _keeps_the_target(group: StreamsGroup, member_id: str) -> Tasks:
    return group.targets.get(min(group.targets)) or Tasks() if group.targets else Tasks()


PLANTED: list[tuple[str, object, str, object]] = [
    ("tasks are given while others have them", reconciliation, "_missing", _nothing_is_held),
    ("tasks are never given", reconciliation, "_missing", _all_is_held),
    ("a member is believed to have given up", OwnedTasks, "overlaps", _revocation_is_believed),
    ("standbys are not taken away", reconciliation, "_both", _keeps_everything),
    (
        "tasks to be given up count as free",
        TaskHolders,
        "replaced",
        _forgets_the_pending(TaskHolders.replaced),
    ),
    ("tasks are never free again", TaskHolders, "replaced", _never_releases(TaskHolders.replaced)),
    ("standbys are not read back", records, "_owned", _loses_standbys),
    ("all members have the same target", StreamsGroup, "target_of", _keeps_the_target),
    ("the processes of standbys are forgotten", state, "_added", lambda holders, tasks, process_id: holders),
]


@pytest.mark.parametrize(("bug", "owner", "name", "wrong"), PLANTED, ids=[bug[0] for bug in PLANTED])
def test_a_planted_bug_is_caught(
    bug: str, owner: object, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)

    with pytest.raises(AssertionError):
        for seed in range(LIVES):
            live(seed)
