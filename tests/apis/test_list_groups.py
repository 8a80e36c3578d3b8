"""ListGroups (16): the groups of this broker."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.list_groups import list_groups
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from pykafka_broker.testing.user import User
from tests.apis.asking import every, only_member


async def listed(user: User, version: int = 5, **filters: Any) -> list[str]:
    answer = await user.send(ListGroupsRequest(**filters), version)
    assert answer.error_code == 0
    return sorted(group.group_id for group in answer.groups)


async def two_groups(user: User) -> None:
    """A group with a member, and one that only commits."""
    await user.create_topic("t")
    await only_member(user, "stable")
    await user.commit("simple", "t", 1)


@pytest.mark.parametrize("version", every(list_groups))
async def test_groups_are_listed_with_what_the_version_can_say(user: User, version: int) -> None:
    await two_groups(user)

    answer = await user.send(ListGroupsRequest(), version)

    def row(group: str, protocol_type: str, state: str) -> ListedGroup:
        return ListedGroup(
            group_id=group,
            protocol_type=protocol_type,
            group_state=state if version >= 4 else "",
            group_type="classic" if version >= 5 else "",
        )

    assert answer.error_code == 0
    assert sorted(answer.groups, key=lambda group: str(group.group_id)) == [
        row("simple", "", "Empty"),
        row("stable", "consumer", "Stable"),
    ]


@pytest.mark.parametrize("version", every(list_groups))
async def test_before_the_first_group_there_are_none_and_that_is_no_error(user: User, version: int) -> None:
    assert await user.send(ListGroupsRequest(), version) == ListGroupsResponse(error_code=0, groups=[])


@pytest.mark.parametrize("version", [4, 5])
async def test_states_choose_whatever_their_case(user: User, version: int) -> None:
    await two_groups(user)

    for states, groups in (
        (["Stable"], ["stable"]),
        (["stable"], ["stable"]),
        (["Empty", "Stable"], ["simple", "stable"]),
        (["PreparingRebalance"], []),
        (["nonsense"], []),
    ):
        assert await listed(user, version, states_filter=states) == groups


async def test_types_choose_as_well(user: User) -> None:
    await two_groups(user)

    assert await listed(user, types_filter=["Classic"]) == ["simple", "stable"]
    assert await listed(user, types_filter=["consumer", "share"]) == []
    assert await listed(user, types_filter=["classic"], states_filter=["Empty"]) == ["simple"]
