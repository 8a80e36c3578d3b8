"""SyncGroup (14): the leader sends the assignment, and each member gets its share."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.sync_group import sync_group
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.sync_group import SyncGroupResponse
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, ends, every, joining_of, only_member, parked, syncing_of


async def joined(user: User, group: str = "g") -> str:
    """The only member of generation 1, not synced yet."""
    await coordinated(user)
    member: str = (await user.send(joining_of(group), 3)).member_id
    return member


@pytest.mark.parametrize("version", every(sync_group))
async def test_the_leader_assigns_and_a_repeated_sync_gets_the_same(user: User, version: int) -> None:
    member = await joined(user)
    assigned = SyncGroupResponse(
        error_code=0,
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignment=b"all",
    )

    assert await user.send(syncing_of("g", member, 1, {member: b"all"}), version) == assigned
    assert await user.send(syncing_of("g", member, 1), version) == assigned


async def test_followers_wait_for_the_leader_and_those_it_omits_get_nothing(
    home: Home, user: User, another: User
) -> None:
    leader = await only_member(user, "g")
    rejoining = await parked(home, another.send(joining_of("g"), 3))
    generation = (await user.send(joining_of("g", leader), 3)).generation_id
    follower = (await rejoining).member_id
    request = syncing_of("g", follower, generation)
    another.write(request, 5)

    await user.send(syncing_of("g", leader, generation, {leader: b"everything"}), 5)

    answer = await another.read(14, 5)
    assert (answer.error_code, answer.assignment) == (0, b"")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"generation": 2}, ErrorCode.ILLEGAL_GENERATION, id="generation"),
        pytest.param({"member": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID, id="member"),
        pytest.param({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID, id="group"),
        pytest.param({"group": ""}, ErrorCode.INVALID_GROUP_ID, id="no group"),
    ],
)
@pytest.mark.parametrize("version", ends(sync_group))
async def test_members_of_other_generations_and_groups_are_refused(
    user: User, version: int, changes: dict[str, Any], error: ErrorCode
) -> None:
    details: dict[str, Any] = {"group": "g", "member": await joined(user), "generation": 1, **changes}

    assert (await user.send(syncing_of(**details), version)).error_code == error


@pytest.mark.parametrize(
    "wrong", [{"protocol_type": "connect"}, {"protocol_name": "other"}, {"protocol_type": None}]
)
async def test_version_5_names_the_protocol_and_it_must_be_the_generations(
    user: User, wrong: dict[str, Any]
) -> None:
    member = await joined(user)

    answer = await user.send(syncing_of("g", member, 1, **wrong), 5)

    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_version_5_must_name_the_protocol_before_the_coordinator_is_asked(user: User) -> None:
    nameless = syncing_of("g", "m", 1, {"m": b"mine"}, protocol_type=None, protocol_name=None)
    inconsistent = await user.send(nameless, 5)
    await coordinated(user)

    assert inconsistent == SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, assignment=b"")
    assert (await user.send(nameless, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (await user.send(nameless, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_while_members_come_together_again_there_is_no_assignment(
    home: Home, user: User, another: User
) -> None:
    member = await only_member(user, "g")
    await parked(home, another.send(joining_of("g"), 3))

    answer = await user.send(syncing_of("g", member, 1), 3)

    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", [3, 5])
async def test_a_static_member_that_was_replaced_is_fenced(user: User, version: int) -> None:
    await coordinated(user)
    old = (await user.send(joining_of("g", instance="i"), 5)).member_id
    await user.send(syncing_of("g", old, 1, {old: b"all"}, group_instance_id="i"), 5)
    new = (await user.send(joining_of("g", instance="i"), 5)).member_id

    fenced = await user.send(syncing_of("g", old, 1, group_instance_id="i"), version)
    current = await user.send(syncing_of("g", new, 1, group_instance_id="i"), version)

    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert (current.error_code, current.assignment) == (0, b"all")
