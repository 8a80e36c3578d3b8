"""Static members (KIP-345): a name that survives restarts, belongs to one process, and saves rebalances."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.classic.state import Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import JoinResult, LeaveGroup, LeavingMember, SyncResult
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld, durable, subscription
from tests.support.members import Member


def static_group(*instances: str, **joining: object) -> tuple[GroupWorld, dict[str, str]]:
    """A stable group of static members; returns their member ids by instance."""
    world = GroupWorld()
    tokens = {name: world.join(instance=name, **joining) for name in instances}  # type: ignore[arg-type]
    world.advance(6_000)
    members = {name: world.joined(token).member_id for name, token in tokens.items()}
    for name, member in members.items():
        world.sync(member, 1, {other: other.encode() for other in members.values()}, instance=name)
    assert world.group().phase is Phase.STABLE
    return world, members


def test_a_static_member_needs_no_handshake_and_is_named_after_its_instance() -> None:
    world = GroupWorld()

    token = world.join(instance="pod-1")
    world.advance(3_000)

    assert world.joined(token).member_id == "pod-1-1"
    assert world.joined(token).members[0].group_instance_id == "pod-1"


def test_a_static_member_that_restarts_keeps_its_assignment_without_a_rebalance() -> None:
    world, members = static_group("a", "b")

    back = world.join(instance="b")

    answer = world.joined(back)
    assert (answer.error, answer.generation, answer.leader_id) == (ErrorCode.NONE, 1, members["a"])
    assert answer.member_id != members["b"]
    assert world.group().phase is Phase.STABLE
    assert replay(world.log).groups["g"] == durable(world.group())
    synced = world.sync(answer.member_id, 1, instance="b")
    assert world.synced(synced).assignment == members["b"].encode()
    assert world.heartbeat(members["a"], 1, instance="a") is ErrorCode.NONE


def test_a_static_leader_that_restarts_is_told_not_to_assign_again_from_version_9_on() -> None:
    world, _ = static_group("a", "b")

    answer = world.joined(world.join(instance="a", version=9))

    assert answer.leader_id == answer.member_id
    assert answer.skip_assignment
    assert len(answer.members) == 2


def test_before_version_9_a_restarted_leader_is_led_to_believe_it_follows() -> None:
    world, members = static_group("a", "b")

    answer = world.joined(world.join(instance="a", version=8))

    assert answer.leader_id == members["a"] != answer.member_id
    assert not answer.skip_assignment
    assert answer.members == ()
    assert world.group().leader_id == answer.member_id


def test_the_former_self_of_a_restarted_member_is_fenced_everywhere() -> None:
    world, members = static_group("a", "b")
    world.join(instance="b")
    old = members["b"]

    assert world.heartbeat(old, 1, instance="b") is ErrorCode.FENCED_INSTANCE_ID
    assert world.synced(world.sync(old, 1, instance="b")).error is ErrorCode.FENCED_INSTANCE_ID
    assert world.joined(world.join(member_id=old, instance="b")).error is ErrorCode.FENCED_INSTANCE_ID
    assert world.commit({("t", 0): 1}, Member(old, 1, "b")) == {("t", 0): ErrorCode.FENCED_INSTANCE_ID}
    leaving = LeavingMember(old, "b")
    result = world.ask(LeaveGroup, world.now_ms, "g", (leaving,))
    assert result.members == ((leaving, ErrorCode.FENCED_INSTANCE_ID),)
    assert world.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_request_of_the_former_self_is_fenced_at_once() -> None:
    world, members = static_group("a", "b")
    parked = world.join(member_id=members["a"], instance="a")

    world.join(instance="a")

    assert world.answers[parked] == JoinResult(ErrorCode.FENCED_INSTANCE_ID, members["a"])


def test_a_restart_while_the_assignment_is_made_begins_again_and_fences_the_parked_sync() -> None:
    world = GroupWorld()
    leader, follower = world.join(instance="a"), world.join(instance="b")
    world.advance(6_000)
    old = world.joined(follower).member_id
    parked = world.sync(old, 1, instance="b")

    back = world.join(instance="b")

    assert world.answers[parked] == SyncResult(ErrorCode.FENCED_INSTANCE_ID)
    assert world.group().phase is Phase.PREPARING_REBALANCE
    world.join(member_id=world.joined(leader).member_id, instance="a")
    assert world.joined(back).generation == 2


def test_a_restart_with_another_subscription_but_the_same_protocol_does_not_rebalance() -> None:
    world, _ = static_group("a", "b")

    back = world.join(instance="b", protocols=(Protocol("range", subscription("other")),))

    assert world.joined(back).generation == 1
    assert world.group().subscribed_topics == frozenset({"t", "other"})
    assert replay(world.log).groups["g"] == durable(world.group())


def test_the_session_timeout_of_a_restarted_member_holds_from_its_first_heartbeat_on() -> None:
    world, _ = static_group("a", session_timeout_ms=8_000)

    back = world.joined(world.join(instance="a", session_timeout_ms=20_000)).member_id

    assert world.timers["session", "g", back] == world.now_ms + 8_000
    world.heartbeat(back, 1, instance="a")
    assert world.timers["session", "g", back] == world.now_ms + 20_000


def test_a_restart_that_changes_the_chosen_protocol_rebalances() -> None:
    both = (Protocol("range", b""), Protocol("sticky", b""))
    world, _ = static_group("a", protocols=both)

    back = world.join(instance="a", protocols=(Protocol("sticky", b""),))

    assert world.joined(back).generation == 2
    assert world.joined(back).protocol_name == "sticky"


def test_a_restarted_member_has_a_session_under_its_new_name_only() -> None:
    world, members = static_group("a")

    back = world.join(instance="a")

    sessions = [key for key in world.timers if key[0] == "session"]  # type: ignore[index]
    assert sessions == [("session", "g", world.joined(back).member_id)]
    assert members["a"] not in world.group().members


def test_a_static_member_that_restarts_before_it_has_synced_is_waited_for_by_its_new_id() -> None:
    world = GroupWorld()
    leader, follower = (world.join(instance=name, rebalance_timeout_ms=8_000) for name in "ab")
    world.advance(6_000)
    first, second = (world.joined(token).member_id for token in (leader, follower))
    world.sync(first, 1, {first: b"A", second: b"B"}, instance="a")

    back = world.joined(world.join(instance="b", rebalance_timeout_ms=8_000)).member_id
    assert world.group().unsynced == {back}
    assert world.synced(world.sync(back, 1, instance="b")).assignment == b"B"
    world.advance(8_000)

    assert (world.group().phase, world.group().generation) == (Phase.STABLE, 1)


def test_a_static_member_that_restarts_before_its_first_generation_keeps_its_place_in_the_queue() -> None:
    world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=30_000))
    world.join(instance="a", session_timeout_ms=10_000)
    back = world.join(instance="a", session_timeout_ms=10_000)

    world.advance(30_000)

    assert world.joined(back).generation == 1


def test_a_silent_static_member_stays_in_the_next_generation_until_its_session_ends() -> None:
    world, members = static_group("a", "b", session_timeout_ms=300_000)

    world.join(member_id=members["a"], instance="a", session_timeout_ms=300_000)
    world.advance(60_000)
    assert world.group().generation == 2
    assert members["b"] in world.group().members

    world.sync(members["a"], 2, {members["a"]: b""}, instance="a")
    world.advance(60_000)
    assert members["b"] not in world.group().members


def test_a_rebalance_that_only_static_members_could_answer_waits_for_them() -> None:
    world, members = static_group("a", session_timeout_ms=300_000)
    (dynamic,) = [world.new_member_id()]
    world.join(member_id=dynamic)
    world.leave(dynamic)
    assert world.group().phase is Phase.PREPARING_REBALANCE

    world.advance(60_000)
    assert world.group().phase is Phase.PREPARING_REBALANCE
    back = world.join(member_id=members["a"], instance="a", session_timeout_ms=300_000)

    assert world.joined(back).generation == 2


def test_an_administrator_removes_static_members_by_their_instance_alone() -> None:
    world, _ = static_group("a", "b")

    result = world.leave(instances=["a", "unknown"])

    assert [error for _, error in result.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(world.group().static_members) == ["b"]


def test_a_member_without_a_name_cannot_be_removed_by_it() -> None:
    world = GroupWorld()
    world.stable_group()

    result = world.ask(LeaveGroup, world.now_ms, "g", (LeavingMember("", None),))

    assert result.members == ((LeavingMember("", None), ErrorCode.UNKNOWN_MEMBER_ID),)


@pytest.mark.parametrize("instance", ["other", "b"])
def test_a_static_member_must_use_its_own_name(instance: str) -> None:
    world, members = static_group("a", "b")
    expected = ErrorCode.FENCED_INSTANCE_ID if instance == "b" else ErrorCode.UNKNOWN_MEMBER_ID

    assert world.heartbeat(members["a"], 1, instance=instance) is expected


def test_a_pending_member_id_cannot_be_claimed_by_a_static_member() -> None:
    world = GroupWorld()
    pending = world.new_member_id()

    asked = world.join(member_id=pending, instance="a")

    # Apache Kafka takes it for a fault of its own.
    assert world.joined(asked) == JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert world.group().pending_members == {pending}


def test_static_members_are_known_by_name_after_a_reload() -> None:
    world, members = static_group("a", "b")

    world = world.reload()
    back = world.join(instance="b", protocols=(Protocol("range", subscription("t")),))

    assert world.joined(back).generation == 1
    assert world.group().static_members["b"] == world.joined(back).member_id != members["b"]
