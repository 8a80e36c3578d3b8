"""DescribeGroups (15): state and members of groups."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.describe_groups import describe_groups
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, ends, every, joining_of, only_member

GROUP_OPERATIONS, NOT_ASKED = 3400, -(2**31)


async def described(user: User, *groups: str, version: int = 6, **details: Any) -> list[DescribedGroup]:
    answer = await user.send(DescribeGroupsRequest(groups=list(groups), **details), version)
    found: list[DescribedGroup] = answer.groups
    return found


@pytest.mark.parametrize("version", every(describe_groups))
async def test_a_stable_group_is_shown_with_its_members_and_what_they_were_given(
    user: User, version: int
) -> None:
    member = await only_member(user, "g")

    assert await described(user, "g", version=version) == [
        DescribedGroup(
            error_code=0,
            group_id="g",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[
                DescribedGroupMember(
                    member_id=member,
                    client_id="test-client",
                    client_host="/127.0.0.1",
                    member_metadata=b"subscription",
                    member_assignment=b"all",
                )
            ],
        )
    ]


@pytest.mark.parametrize("version", every(describe_groups))
async def test_an_unknown_group_is_dead_and_only_version_6_calls_that_an_error(
    user: User, version: int
) -> None:
    await coordinated(user)

    unknown = DescribedGroup(
        error_code=0, group_id="g", group_state="Dead", protocol_type="", protocol_data="", members=[]
    )
    if version >= 6:
        unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        unknown.error_message = "Group g not found."
    assert await described(user, "g", version=version) == [unknown]


async def test_a_group_between_join_and_assignment_shows_no_protocol_yet(user: User) -> None:
    await coordinated(user)
    await user.send(joining_of("g"), 3)

    [group] = await described(user, "g")

    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert [member.member_assignment for member in group.members] == [b""]


async def test_a_group_that_only_commits_is_empty_and_has_no_protocol(user: User) -> None:
    await user.create_topic("t")
    await user.commit("g", "t", 1)

    [group] = await described(user, "g")

    assert (group.group_state, group.protocol_type, group.members) == ("Empty", "", [])


@pytest.mark.parametrize("version", ends(describe_groups, since=3))
async def test_allowed_operations_are_told_to_those_who_ask(user: User, version: int) -> None:
    await only_member(user, "g")

    [plain] = await described(user, "g", version=version)
    [asked] = await described(user, "g", version=version, include_authorized_operations=True)

    assert (plain.authorized_operations, asked.authorized_operations) == (NOT_ASKED, GROUP_OPERATIONS)


async def test_nothing_is_allowed_with_a_group_that_version_6_does_not_find(user: User) -> None:
    await coordinated(user)

    [missing] = await described(user, "missing", version=6, include_authorized_operations=True)

    assert missing.authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", [4, 6])
async def test_static_members_show_their_instance(user: User, version: int) -> None:
    await coordinated(user)
    await user.send(joining_of("g", instance="i"), 5)

    [group] = await described(user, "g", version=version)

    assert [member.group_instance_id for member in group.members] == ["i"]


async def test_groups_are_answered_in_the_order_asked(user: User) -> None:
    await only_member(user, "b")

    found = await described(user, "c", "b", "a", version=5)

    assert [(group.group_id, group.group_state) for group in found] == [
        ("c", "Dead"),
        ("b", "Stable"),
        ("a", "Dead"),
    ]


@pytest.mark.parametrize("version", ends(describe_groups))
async def test_without_the_offsets_topic_there_is_no_coordinator(user: User, version: int) -> None:
    [group] = await described(user, "g", version=version)

    assert group.error_code == ErrorCode.NOT_COORDINATOR
