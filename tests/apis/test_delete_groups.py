"""DeleteGroups (42): empty groups are forgotten, with their offsets."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.delete_groups import delete_groups
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, ends, every, only_member


async def deleted(user: User, *groups: str, version: int = 2) -> dict[str, int]:
    answer = await user.send(DeleteGroupsRequest(groups_names=list(groups)), version)
    return {result.group_id: result.error_code for result in answer.results}


@pytest.mark.parametrize("version", every(delete_groups))
async def test_a_deleted_groups_offsets_are_gone(user: User, version: int) -> None:
    await user.create_topic("t")
    await user.commit("g", "t", 5)

    assert await deleted(user, "g", version=version) == {"g": 0}
    assert await user.committed("g") == {}
    assert await deleted(user, "g", version=version) == {"g": ErrorCode.GROUP_ID_NOT_FOUND}


async def test_they_stay_gone_after_a_restart(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("t")
        await user.commit("g", "t", 5)
        await deleted(user, "g")
    async with home.running() as user:
        assert await user.committed("g") == {}


@pytest.mark.parametrize("version", ends(delete_groups))
async def test_each_group_succeeds_or_fails_on_its_own(user: User, version: int) -> None:
    await user.create_topic("t")
    await only_member(user, "busy")
    await user.commit("simple", "t", 5)

    got = await deleted(user, "busy", "missing", "simple", "missing", version=version)

    assert got == {
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "missing": ErrorCode.GROUP_ID_NOT_FOUND,
        "simple": 0,
    }


async def test_nothing_named_is_nothing_deleted(user: User) -> None:
    await coordinated(user)

    assert await deleted(user) == {}
