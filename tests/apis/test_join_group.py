"""JoinGroup (11): members come together, and learn who leads and what they speak."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.join_group import join_group
from pykafka_broker.coordinator.groups.core.classic.state import Member
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupResponseMember
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, ends, every, joining_of, only_member, parked, syncing_of


async def joined(user: User, request: Any, version: int) -> Any:
    """Join; a new member takes the id it is given and comes back, as from v4 on it must."""
    answer = await user.send(request, version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = answer.member_id
        answer = await user.send(request, version)
    return answer


@pytest.mark.parametrize("version", every(join_group))
async def test_the_first_member_leads_generation_1_and_sees_all_members(user: User, version: int) -> None:
    await coordinated(user)

    answer = await joined(user, joining_of("g"), version)

    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id != ""
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert answer.members == [JoinGroupResponseMember(member_id=answer.member_id, metadata=b"subscription")]


@pytest.mark.parametrize("version", ends(join_group, since=4))
async def test_a_new_dynamic_member_is_given_an_id_first(user: User, version: int) -> None:
    await coordinated(user)

    answer = await user.send(joining_of("g"), version)

    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("test-client-")
    assert (answer.generation_id, answer.members) == (-1, [])


@pytest.mark.parametrize("version", [0, 3])
async def test_before_version_4_a_new_member_is_let_in_at_once(user: User, version: int) -> None:
    await coordinated(user)

    assert (await user.send(joining_of("g"), version)).error_code == 0


@pytest.mark.parametrize("version", ends(join_group, since=5))
async def test_a_static_member_is_let_in_at_once_and_known_again(user: User, version: int) -> None:
    await coordinated(user)
    first = await user.send(joining_of("g", instance="i"), version)
    await user.send(syncing_of("g", first.member_id, 1, {first.member_id: b"all"}), 5)

    again = await user.send(joining_of("g", instance="i"), version)

    assert (first.error_code, again.error_code, again.generation_id) == (0, 0, 1)
    assert again.member_id != first.member_id
    assert again.skip_assignment == (version >= 9), "its old assignment still holds"
    heartbeat = HeartbeatRequest(
        group_id="g", generation_id=1, member_id=first.member_id, group_instance_id="i"
    )
    assert (await user.send(heartbeat, 4)).error_code == ErrorCode.FENCED_INSTANCE_ID


async def test_only_the_leader_learns_of_the_others_and_all_of_the_same_protocol(
    user: User, another: User, home: Home
) -> None:
    leader = await only_member(user, "g", protocols=[("range", b"r"), ("sticky", b"s")])
    request = joining_of("g", protocols=[("sticky", b"s2"), ("range", b"r2")])
    request.member_id = (await another.send(request, 9)).member_id
    follower = await parked(home, another.send(request, 9))

    rejoining = joining_of("g", leader, protocols=[("range", b"r"), ("sticky", b"s")])
    at_leader = await user.send(rejoining, 9)
    at_follower = await follower

    assert at_leader.generation_id == at_follower.generation_id == 2
    assert at_leader.leader == at_follower.leader == leader
    assert at_leader.protocol_name == at_follower.protocol_name
    assert {member.member_id for member in at_leader.members} == {leader, request.member_id}
    assert at_follower.members == []


async def test_the_first_rebalance_waits_for_others_that_start_at_the_same_time(home: Home) -> None:
    home.overrides["group.initial.rebalance.delay.ms"] = "3000"
    async with home.running() as user:
        await coordinated(user)
        joining = await parked(home, user.send(joining_of("g"), 3))

        await home.clock.pass_time(2_999)
        assert not joining.done()
        await home.clock.pass_time(1)

        assert (await joining).generation_id == 1


@pytest.mark.parametrize(
    ("request_of_none", "error"),
    [
        pytest.param(joining_of(""), ErrorCode.INVALID_GROUP_ID, id="no group"),
        pytest.param(
            joining_of("g", session_timeout_ms=1), ErrorCode.INVALID_SESSION_TIMEOUT, id="short session"
        ),
        pytest.param(
            joining_of("g", session_timeout_ms=10**9), ErrorCode.INVALID_SESSION_TIMEOUT, id="long session"
        ),
        pytest.param(joining_of("g", protocols=[]), ErrorCode.INCONSISTENT_GROUP_PROTOCOL, id="no protocols"),
        pytest.param(
            joining_of("g", protocol_type=""), ErrorCode.INCONSISTENT_GROUP_PROTOCOL, id="no protocol type"
        ),
        pytest.param(joining_of("g", "unknown"), ErrorCode.UNKNOWN_MEMBER_ID, id="id of no group"),
    ],
)
@pytest.mark.parametrize("version", ends(join_group))
async def test_who_does_not_fit_into_a_new_group_is_refused(
    user: User, version: int, request_of_none: Any, error: ErrorCode
) -> None:
    await coordinated(user)

    assert (await user.send(request_of_none, version)).error_code == error


@pytest.mark.parametrize(
    ("request_of_none", "error"),
    [
        (joining_of("g", protocols=[("other", b"")]), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (joining_of("g", protocol_type="connect"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (joining_of("g", "unknown"), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
    ids=["no common protocol", "other protocol type", "unknown member"],
)
@pytest.mark.parametrize("version", ends(join_group))
async def test_who_does_not_fit_into_this_group_is_refused(
    user: User, version: int, request_of_none: Any, error: ErrorCode
) -> None:
    await only_member(user, "g")

    assert (await user.send(request_of_none, version)).error_code == error


@pytest.mark.parametrize(("version", "protocol_name"), [(6, ""), (7, None)])
async def test_a_refused_join_has_no_protocol_name_which_old_versions_spell_empty(
    user: User, version: int, protocol_name: str | None
) -> None:
    await coordinated(user)

    assert (await user.send(joining_of("g", "unknown"), version)).protocol_name == protocol_name


async def test_version_0_waits_for_a_rebalance_as_long_as_for_a_session(home: Home) -> None:
    async with home.running() as user:
        await coordinated(user)
        member = (await user.send(joining_of("g", session_timeout_ms=10_000), 0)).member_id
        await user.send(syncing_of("g", member, 1, {member: b"all"}), 3)

    async with home.running() as user:
        described = await user.send(DescribeGroupsRequest(groups=["g"]), 5)
        assert described.groups[0].group_state == "Stable"
        groups = home.broker.node.broker.coordinators.groups
        shard = groups.shards.shard_of(groups.partition_for("g"))
        kept = shard.state.groups["g"].members[member]
        assert isinstance(kept, Member)
        assert kept.rebalance_timeout_ms == 10_000


async def test_a_protocol_that_is_offered_twice_counts_once(user: User) -> None:
    await coordinated(user)
    offered = [("range", b"r"), ("sticky", b"s"), ("range", b"r")]

    assert (await user.send(joining_of("g", protocols=offered), 3)).protocol_name == "range"


async def test_a_full_group_takes_no_new_member(home: Home) -> None:
    home.overrides["group.max.size"] = "1"
    async with home.running() as user:
        await only_member(user, "g")

        answer = await user.send(joining_of("g"), 3)

        assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


async def test_without_the_offsets_topic_there_is_no_coordinator(user: User) -> None:
    assert (await user.send(joining_of("g"), 9)).error_code == ErrorCode.NOT_COORDINATOR
