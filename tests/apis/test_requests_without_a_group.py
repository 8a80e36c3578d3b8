"""Requests that name no group are refused alike by each broker, whether or not it coordinates anything."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.offset_delete import OffsetDeleteRequest
from pykafka_broker.testing.user import User
from tests.apis.asking import joining_of, syncing_of


@pytest.mark.parametrize(
    ("request_of_none", "version"),
    [
        pytest.param(joining_of(""), 9, id="JoinGroup"),
        pytest.param(syncing_of("", "member", 1), 5, id="SyncGroup"),
        pytest.param(HeartbeatRequest(group_id="", generation_id=1, member_id="member"), 4, id="Heartbeat"),
        pytest.param(
            LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="member")]), 5, id="LeaveGroup"
        ),
        pytest.param(OffsetDeleteRequest(group_id="", topics=[]), 0, id="OffsetDelete"),
    ],
)
async def test_a_broker_that_coordinates_no_groups_says_what_is_wrong(
    user: User, request_of_none: Any, version: int
) -> None:
    answer = await user.send(request_of_none, version)

    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


async def test_the_answer_to_such_a_join_names_the_member(user: User) -> None:
    answer = await user.send(joining_of("", "member"), 9)

    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_GROUP_ID, "member")
