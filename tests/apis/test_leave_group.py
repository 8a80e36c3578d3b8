"""LeaveGroup (13): members go at once instead of timing out."""

from __future__ import annotations

import logging

import pytest

from pykafka_broker.apis.leave_group import leave_group
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, every, joining_of, only_member, syncing_of


def leaving(version: int, *members: tuple[str, str | None], group: str = "g") -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=members[0][0])
    named = [MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members]
    return LeaveGroupRequest(group_id=group, members=named)


async def state(user: User, group: str = "g") -> str:
    [described] = (await user.send(DescribeGroupsRequest(groups=[group]), 5)).groups
    found: str = described.group_state
    return found


def answered(version: int, error: int, member: str, instance: str | None = None) -> LeaveGroupResponse:
    """The answer about one member: from v3 on in its own row."""
    if version < 3:
        return LeaveGroupResponse(error_code=error)
    row = MemberResponse(member_id=member, group_instance_id=instance, error_code=error)
    return LeaveGroupResponse(error_code=0, members=[row])


@pytest.mark.parametrize("version", every(leave_group))
async def test_when_the_last_member_leaves_the_group_is_empty(user: User, version: int) -> None:
    member = await only_member(user, "g")

    assert await user.send(leaving(version, (member, None)), version) == answered(version, 0, member)
    assert await state(user) == "Empty"


@pytest.mark.parametrize("version", every(leave_group))
async def test_an_unknown_member_cannot_leave(user: User, version: int) -> None:
    await only_member(user, "g")
    unknown = answered(version, ErrorCode.UNKNOWN_MEMBER_ID, "unknown")

    assert await user.send(leaving(version, ("unknown", None)), version) == unknown
    assert await user.send(leaving(version, ("unknown", None), group="other"), version) == unknown
    assert await state(user) == "Stable"


@pytest.mark.parametrize("version", [3, 5])
async def test_one_unknown_member_does_not_keep_the_others(user: User, version: int) -> None:
    member = await only_member(user, "g")

    answer = await user.send(leaving(version, ("unknown", None), (member, None)), version)

    assert [m.error_code for m in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert await state(user) == "Empty"


@pytest.mark.parametrize("version", [3, 5])
async def test_static_members_are_sent_away_by_instance(
    user: User, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await coordinated(user)
    member = (await user.send(joining_of("g", instance="i"), 5)).member_id
    await user.send(syncing_of("g", member, 1, {member: b"all"}, group_instance_id="i"), 5)

    wrong = await user.send(leaving(version, ("unknown", "i"), ("", "stranger")), version)
    right = await user.send(leaving(version, ("", "i")), version)

    assert [m.error_code for m in wrong.members] == [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert [(m.error_code, m.group_instance_id) for m in right.members] == [(0, "i")]
    assert [text for text in caplog.messages if "sent away" in text] == [
        "Members sent away from group g: i, as User:ANONYMOUS at 127.0.0.1 asked."
    ]
    assert await state(user) == "Empty"


@pytest.mark.parametrize("version", [0, 3, 5])
async def test_a_group_has_a_name(user: User, version: int) -> None:
    await coordinated(user)

    answer = await user.send(leaving(version, ("m", None), group=""), version)

    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
