"""Live groups change between the classic and the consumer protocol, and members of both live in one group."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, MigrationPolicy
from pykafka_broker.coordinator.groups.core.consumer.consumer_protocol import read_assignment
from pykafka_broker.coordinator.groups.core.consumer.state import GroupState
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.coordinator.test_consumer_group import kinds
from tests.support.groups import GroupWorld, durable
from tests.support.members import Member

T = b"t" * 16


def subscribing(*topics: str, owned: dict[str, list[int]] | None = None) -> tuple[Protocol, ...]:
    owned_partitions = [
        TopicPartition(topic=topic, partitions=numbers) for topic, numbers in (owned or {}).items()
    ]
    said = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=owned_partitions)
    return (Protocol("range", b"\0\1" + encode(said, 1)),)


def assigning(*partitions: int, user_data: bytes | None = None) -> bytes:
    topics = [TopicPartition(topic="t", partitions=list(partitions))] if partitions else []
    return b"\0\1" + encode(ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data), 1)


def partitions_of(assignment: bytes) -> list[int]:
    return [
        number for topic in read_assignment(assignment).assigned_partitions for number in topic.partitions
    ]


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0))
    world.set_topics(TopicInfo("t", T, 4))
    return world


def classic_group(world: GroupWorld, *shares: bytes) -> list[str]:
    """A stable classic group whose members have these assignments."""
    members = [world.new_member_id(protocols=subscribing("t")) for _ in shares]
    for member in members:
        world.join("g", member, protocols=subscribing("t"))
    world.advance(0)
    group = world.group()
    for member in members:
        leads = member == group.leader_id
        shared = dict(zip(members, shares, strict=True)) if leads else None
        world.sync(member, group.generation, shared)
    assert world.group().phase is Phase.STABLE
    return members


def rejoin(world: GroupWorld, member: str, *owned: int) -> tuple[int, list[int]]:
    """A classic member joins again and asks for its assignment; answers its generation and partitions."""
    joined = world.joined(world.join("g", member, protocols=subscribing("t", owned={"t": list(owned)})))
    assert joined.error is ErrorCode.NONE
    synced = world.synced(world.sync(member, joined.generation))
    assert synced.error is ErrorCode.NONE
    return joined.generation, partitions_of(synced.assignment)


def test_the_first_consumer_makes_a_consumer_group_of_a_classic_one_and_no_member_loses_anything(
    world: GroupWorld,
) -> None:
    a, b = classic_group(world, assigning(0, 1), assigning(2, 3))
    generation = world.group().generation

    answer = world.join_consumer("new", "t")

    assert (answer.member_epoch, answer.assignment) == (generation + 1, ())
    group = world.consumer_group()
    assert {name: dict(member.assigned) for name, member in group.members.items()} == {
        a: {T: {0: generation, 1: generation}},
        b: {T: {2: generation, 3: generation}},
        "new": {},
    }
    assert kinds(world.last_records)[0] == "-GroupMetadata"
    assert replay(world.log).groups["g"] == group._replace(refresh_deadline_ms=0)
    assert ("session", "g", a) not in world.timers
    assert world.timers["consumer-session", "g", a] == world.now_ms + 10_000


def test_classic_members_follow_by_joining_again_and_give_up_what_others_get(world: GroupWorld) -> None:
    a, b = classic_group(world, assigning(0, 1), assigning(2, 3))
    generation = world.group().generation
    world.join_consumer("new", "t")

    assert world.heartbeat(a, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.timers["consumer-join", "g", a] == world.now_ms + 60_000
    # It is told to keep less, gives the rest up by not owning it when it joins once more, and moves on.
    first = rejoin(world, a, 0, 1)
    assert ("consumer-join", "g", a) not in world.timers
    assert world.heartbeat(a, first[0]) in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
    second = rejoin(world, a, *first[1])
    other = rejoin(world, b, 2, 3)
    other = rejoin(world, b, *other[1])
    theirs = dict(world.consumer("new", generation + 1).assignment or ())[T]

    assert sorted([*second[1], *other[1], *theirs]) == [0, 1, 2, 3]
    assert second[0] == other[0] == generation + 1
    assert world.consumer_group().state is GroupState.STABLE
    assert world.heartbeat(a, generation + 1) is ErrorCode.NONE
    assert world.heartbeat(a, generation) is ErrorCode.ILLEGAL_GENERATION


def test_a_classic_member_that_does_not_join_again_in_time_is_fenced(world: GroupWorld) -> None:
    a, b = classic_group(world, assigning(0, 1), assigning(2, 3))
    generation = world.group().generation
    world.join_consumer("new", "t")
    for _ in range(8):
        assert world.heartbeat(a, generation) is ErrorCode.REBALANCE_IN_PROGRESS
        world.heartbeat(b, generation)
        world.consumer("new", generation + 1)
        world.advance(8_000)

    assert a not in world.consumer_group().members
    assert world.heartbeat(a, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_the_last_consumer_leaves_the_group_is_classic_again_and_rebalances(world: GroupWorld) -> None:
    a, b = classic_group(world, assigning(0, 1), assigning(2, 3))
    generation = world.group().generation
    world.join_consumer("new", "t")

    world.consumer("new", -1)

    group = world.group()
    assert (group.phase, group.generation) == (Phase.PREPARING_REBALANCE, generation + 1)
    assert list(group.members) == [a, b]
    assert partitions_of(group.members[a].assignment) == [0, 1]
    assert world.timers["session", "g", a] == world.now_ms + 10_000
    assert not any("consumer-session" in str(timer) for timer in world.timers)
    replayed = replay(world.log).groups["g"]
    assert isinstance(replayed, ClassicGroup)
    assert replayed == durable(group._replace(phase=Phase.STABLE))
    assert world.heartbeat(a, generation + 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_quick_change_forth_and_back_gives_away_no_partition_that_is_still_owned(world: GroupWorld) -> None:
    a, _ = classic_group(world, assigning(0, 1, 2, 3), assigning())
    world.join_consumer("new", "t")
    world.consumer("new", -1)

    world.join_consumer("newer", "t")

    group = world.consumer_group()
    assert sorted(group.members[a].assigned[T]) == [0, 1, 2, 3]
    assert not group.members["newer"].assigned


def test_a_static_consumer_that_restarts_with_the_classic_protocol_makes_the_group_classic(
    world: GroupWorld,
) -> None:
    world.join_consumer("new", "t", instance="pod")

    answer = world.joined(world.join("g", "", instance="pod", protocols=subscribing("t")))

    group = world.group()
    assert (group.phase, list(group.members)) == (Phase.STABLE, [answer.member_id])
    assert (answer.generation, group.static_members) == (2, {"pod": answer.member_id})
    synced = world.synced(world.sync(answer.member_id, 2, instance="pod"))
    assert partitions_of(synced.assignment) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("policy", "upgrades", "joins", "downgrades"),
    [
        (MigrationPolicy.BIDIRECTIONAL, True, True, True),
        (MigrationPolicy.UPGRADE, True, True, False),
        (MigrationPolicy.DOWNGRADE, False, True, True),
        (MigrationPolicy.DISABLED, False, False, False),
    ],
)
def test_the_policy_says_which_way_is_open(
    world: GroupWorld, policy: MigrationPolicy, upgrades: bool, joins: bool, downgrades: bool
) -> None:
    world.config = world.config._replace(consumer_group_migration_policy=policy)
    classic_group(world, assigning(0, 1, 2, 3))
    error = world.join_consumer("new", "t").error
    assert error is (ErrorCode.NONE if upgrades else ErrorCode.GROUP_ID_NOT_FOUND)

    world.join_consumer("x", "t", group_id="mixed")
    first = world.joined(world.join("mixed", "", protocols=subscribing("t")))
    assert first.error is (ErrorCode.MEMBER_ID_REQUIRED if joins else ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert bool(first.member_id) is joins
    if joins:
        world.join("mixed", first.member_id, protocols=subscribing("t"))
        world.consumer("x", -1, group_id="mixed")
        assert isinstance(world.state.groups["mixed"], ClassicGroup) is downgrades


def test_a_classic_member_that_a_group_of_consumers_refuses_is_told_no_member_id(world: GroupWorld) -> None:
    world.join_consumer("x", "t")
    world.join("g", "mine", protocols=subscribing("t"))
    assert set(world.consumer_group().members) == {"x", "mine"}

    refused = world.joined(world.join("g", "mine", protocols=(Protocol("own", b""),)))

    assert refused == events.JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert set(world.consumer_group().members) == {"x", "mine"}


def test_groups_that_cannot_be_understood_do_not_change(world: GroupWorld) -> None:
    world.stable_group(group_id="connect", protocol_type="connect")
    classic_group(world, assigning(0, user_data=b"of a custom assignor"))

    assert world.join_consumer("new", "t", group_id="connect").error is ErrorCode.GROUP_ID_NOT_FOUND
    refused = world.join_consumer("new", "t")
    assert refused.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "unsupported custom assignor" in (refused.error_message or "")
    assert world.group().phase is Phase.STABLE


def test_empty_groups_just_change_their_kind_and_keep_their_offsets(world: GroupWorld) -> None:
    world.commit({("t", 0): 5})
    world.join_consumer("new", "t")
    assert kinds(world.last_records)[0] == "-GroupMetadata"
    assert world.fetch() == {("t", 0): 5}

    world.consumer("new", -1)
    member = world.new_member_id(protocols=subscribing("t"))
    assert kinds(world.last_records) == [
        "-TargetAssignmentMetadata",
        "-PartitionMetadata",
        "-Metadata",
        "GroupMetadata",
    ]
    assert world.group().pending_members == {member}
    assert world.fetch() == {("t", 0): 5}
    assert isinstance(replay(world.log).groups["g"], ClassicGroup)


def test_commits_of_classic_members_are_fenced_in_their_own_words(world: GroupWorld) -> None:
    (a,) = classic_group(world, assigning(0, 1, 2, 3))
    generation = world.group().generation
    world.join_consumer("new", "t")

    key = ("t", 0)
    assert world.commit({key: 1}, Member(a, generation), topic_id=T) == {key: ErrorCode.NONE}
    assert world.commit({key: 1}, Member(a, generation + 5), topic_id=T) == {
        key: ErrorCode.ILLEGAL_GENERATION
    }
    late: dict[str, Any] = {"version": 9, "topic_id": T}
    assert world.commit({key: 1}, Member("new", generation + 9), **late) == {
        key: ErrorCode.STALE_MEMBER_EPOCH
    }
    assert world.commit({key: 1}, Member("who", 1), **late) == {key: ErrorCode.UNKNOWN_MEMBER_ID}


def test_administrators_remove_members_of_both_protocols(world: GroupWorld) -> None:
    (a,) = classic_group(world, assigning(0, 1, 2, 3))
    world.join_consumer("new", "t", instance="pod")

    answer = world.leave(a, "unknown", instances=["pod"])

    assert [error for _, error in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert world.consumer_group().state is GroupState.EMPTY
    assert world.ask(events.DeleteGroup, "g") is ErrorCode.NONE
    assert "g" not in world.state.groups
    assert "g" not in replay(world.log).groups
