"""SyncGroup, Heartbeat, LeaveGroup, and what happens to members that fall silent."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.classic.records import group_record
from pykafka_broker.coordinator.groups.core.classic.state import Phase
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import LeaveResult, LeavingMember, SyncResult
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.machine.step import Reply, SetTimer
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records.group import GroupMetadataValue
from tests.support.groups import GroupWorld, durable, through_bytes


def joined_group(size: int = 2) -> tuple[GroupWorld, list[str]]:
    """A group whose members have joined generation 1 and have not asked for their assignment."""
    world = GroupWorld()
    tokens = [world.join(version=3) for _ in range(size)]
    world.advance(6_000)
    return world, [world.joined(token).member_id for token in tokens]


def test_a_follower_waits_until_the_leader_has_assigned() -> None:
    world, (leader, follower) = joined_group()

    waiting = world.sync(follower, 1)
    assert waiting not in world.answers
    assigned = world.sync(leader, 1, {leader: b"L", follower: b"F"})

    assert world.answers[waiting] == SyncResult(ErrorCode.NONE, "consumer", "range", b"F")
    assert world.answers[assigned] == SyncResult(ErrorCode.NONE, "consumer", "range", b"L")
    assert world.group().phase is Phase.STABLE
    assert world.last_records == (through_bytes(group_record(world.group())),)


def test_the_record_of_an_assignment_says_when_its_generation_began() -> None:
    world, (member,) = joined_group(1)
    began_ms = world.group().phase_began_ms
    world.advance(4_000)

    world.sync(member, 1, {member: b"mine"})

    (record,) = world.last_records
    assert isinstance(record, Record) and isinstance(record.value, GroupMetadataValue)
    assert record.value.current_state_timestamp == began_ms == world.now_ms - 7_000
    assert replay(world.log).groups["g"] == durable(world.group())


def test_members_the_leader_left_out_get_an_empty_assignment() -> None:
    world, (leader, follower) = joined_group()

    world.sync(leader, 1, {leader: b"all"})

    assert world.synced(world.sync(follower, 1)) == SyncResult(ErrorCode.NONE, "consumer", "range", b"")


def test_a_member_left_out_does_not_keep_what_it_had_in_the_generation_before() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)
    world.join(member_id=leader)
    world.join(member_id=follower)

    world.sync(leader, 2, {leader: b"all"})

    assert world.synced(world.sync(follower, 2)).assignment == b""


def test_a_member_of_a_stable_group_gets_its_assignment_again() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()

    assert world.synced(world.sync(member, 1)).assignment == f"for {member}".encode()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_fenced_sync_changes_nothing(changed: dict[str, object], error: ErrorCode) -> None:
    world, (leader, _) = joined_group()
    before = world.state
    request: dict[str, object] = {"member_id": leader, "generation": 1, **changed}

    token = world.sync(**request)  # type: ignore[arg-type]

    assert world.answers[token] == SyncResult(error)
    assert world.state == before


def test_a_sync_during_a_rebalance_sends_the_member_to_join_again() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)
    world.join(member_id=leader)

    assert world.synced(world.sync(follower, 1)).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_that_overtakes_the_assignment_sends_waiting_members_to_join_again() -> None:
    world, (_, follower) = joined_group()
    waiting = world.sync(follower, 1)

    world.join(version=3)

    assert world.answers[waiting] == SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_second_sync_of_a_waiting_member_answers_the_first() -> None:
    world, (leader, follower) = joined_group()
    lost = world.sync(follower, 1)

    again = world.sync(follower, 1)
    world.sync(leader, 1, {follower: b"F"})

    assert world.answers[lost] == SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
    assert world.synced(again).assignment == b"F"


def test_members_that_never_sync_are_dropped_after_the_rebalance_timeout() -> None:
    world = GroupWorld()
    tokens = [
        world.join(version=3, rebalance_timeout_ms=20_000, session_timeout_ms=100_000) for _ in range(2)
    ]
    world.advance(6_000)
    leader = world.joined(tokens[0]).member_id
    world.sync(leader, 1)

    world.advance(20_000)

    assert list(world.group().members) == [leader]
    assert world.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_whose_members_all_fail_to_sync_is_empty_afterwards() -> None:
    world = GroupWorld()
    world.join(version=3, rebalance_timeout_ms=5_000, session_timeout_ms=100_000)

    world.advance(3_000 + 5_000)

    assert (world.group().phase, world.group().generation) == (Phase.EMPTY, 2)


# ---- heartbeats and sessions ----


def test_a_heartbeat_moves_the_session_and_keeps_the_very_same_state() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    before = world.state

    error = world.heartbeat(member, 1)

    assert error is ErrorCode.NONE
    assert world.state is before
    assert world.last_records == ()
    assert world.last_effects == (
        SetTimer(("session", "g", member), world.now_ms + 10_000),
        Reply(world._tokens, ErrorCode.NONE),
    )


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_refused_heartbeat_does_not_renew_the_session(changed: dict[str, object], error: ErrorCode) -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    before = dict(world.timers)
    world.advance(1)
    request: dict[str, object] = {"member_id": member, "generation": 1, **changed}

    assert world.heartbeat(**request) is error  # type: ignore[arg-type]
    assert world.timers == before


def test_a_member_that_heartbeats_while_the_assignment_is_made_stays() -> None:
    world, (leader, _) = joined_group()

    assert world.heartbeat(leader, 1) is ErrorCode.NONE


def test_a_silent_member_is_expelled_and_the_others_rebalance() -> None:
    world = GroupWorld()
    silent, alive = world.stable_group(2)
    world.advance(9_000)
    world.heartbeat(alive, 1)

    world.advance(1_000)

    assert list(world.group().members) == [alive]
    assert world.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(alive, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.joined(world.join(member_id=alive)).leader_id == alive


def test_a_group_whose_last_member_falls_silent_is_stored_as_empty() -> None:
    world = GroupWorld()
    world.stable_group()

    world.advance(10_000)

    assert world.group().phase is Phase.EMPTY
    assert (world.group().generation, world.group().leader_id) == (2, None)
    assert world.last_records == (through_bytes(group_record(world.group())),)


def test_a_member_whose_request_is_parked_does_not_lose_its_session() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
    parked = world.join(member_id=leader)
    for _ in range(4):
        world.advance(5_000)
        assert world.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    assert leader in world.group().members
    world.join(member_id=follower)
    assert world.joined(parked).generation == 2
    assert world.timers["session", "g", leader] == world.now_ms + 10_000


def test_the_last_member_a_rebalance_waits_for_may_also_time_out() -> None:
    world = GroupWorld()
    leader, _ = world.stable_group(2)
    parked = world.join(member_id=leader)

    world.advance(10_000)

    assert world.joined(parked).generation == 2


# ---- leaving ----


def test_a_member_that_leaves_makes_the_others_rebalance() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)

    assert world.leave(leader) == LeaveResult(ErrorCode.NONE, ((LeavingMember(leader), ErrorCode.NONE),))

    assert world.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert ("session", "g", leader) not in world.timers


def test_the_last_member_to_leave_leaves_an_empty_group_behind() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()

    world.leave(member)

    assert (world.group().phase, world.group().generation) == (Phase.EMPTY, 2)
    assert list(world.timers) == []


def test_every_leaving_member_gets_its_own_answer() -> None:
    world = GroupWorld()
    member, _ = world.stable_group(2)
    pending = world.new_member_id()

    result = world.leave(member, "unknown", pending)

    assert [error for _, error in result.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert world.group().pending_members == frozenset()


def test_leaving_a_group_that_does_not_exist_is_answered_for_each_member() -> None:
    world = GroupWorld()

    assert world.leave("m") == LeaveResult(
        ErrorCode.NONE, ((LeavingMember("m"), ErrorCode.UNKNOWN_MEMBER_ID),)
    )


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    world, (_, follower) = joined_group()
    parked = world.sync(follower, 1)

    world.leave(follower)

    assert world.answers[parked] == SyncResult(ErrorCode.UNKNOWN_MEMBER_ID)


def test_leaving_completes_a_rebalance_that_waited_for_no_other_member() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)
    parked = world.join(member_id=leader)

    world.leave(follower)

    assert world.joined(parked).generation == 2


def test_leaving_during_the_initial_delay_does_not_end_it() -> None:
    world = GroupWorld()
    staying, leaving = world.join(version=3), world.join(version=3)

    world.leave(f"client-{leaving}")
    assert staying not in world.answers
    world.advance(6_000)

    assert len(world.joined(staying).members) == 1


def test_a_member_id_that_expires_during_the_initial_delay_does_not_end_it() -> None:
    world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=60_000))
    token = world.join(version=3, rebalance_timeout_ms=60_000)
    world.new_member_id()

    world.advance(59_999)
    assert token not in world.answers
    world.advance(1)

    assert len(world.joined(token).members) == 1
