"""Heartbeat (12): a member is alive, and hears when to come back."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.heartbeat import heartbeat
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, ends, every, joining_of, only_member, parked


async def beat(user: User, member: str, generation: int = 1, version: int = 4, **details: Any) -> int:
    request = HeartbeatRequest(
        **{"group_id": "g", "generation_id": generation, "member_id": member, **details}
    )
    error: int = (await user.send(request, version)).error_code
    return error


@pytest.mark.parametrize("version", every(heartbeat))
async def test_a_member_of_this_generation_is_alive(user: User, version: int) -> None:
    member = await only_member(user, "g")

    assert await beat(user, member, version=version) == 0


@pytest.mark.parametrize("version", ends(heartbeat))
async def test_members_of_other_generations_and_groups_are_refused(user: User, version: int) -> None:
    member = await only_member(user, "g")

    assert await beat(user, member, 0, version) == ErrorCode.ILLEGAL_GENERATION
    assert await beat(user, "unknown", 1, version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await beat(user, member, 1, version, group_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert await beat(user, member, 1, version, group_id="") == ErrorCode.INVALID_GROUP_ID


async def test_heartbeats_keep_a_session_alive_and_silence_ends_it(home: Home, user: User) -> None:
    member = await only_member(user, "g", session_timeout_ms=10_000)

    for _ in range(3):
        await home.clock.pass_time(9_000)
        assert await beat(user, member) == 0
    await home.clock.pass_time(10_001)

    assert await beat(user, member) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_hears_that_it_must_rejoin(home: Home, user: User, another: User) -> None:
    member = await only_member(user, "g")
    await parked(home, another.send(joining_of("g"), 3))

    assert await beat(user, member) == ErrorCode.REBALANCE_IN_PROGRESS


async def test_before_the_assignment_a_member_is_alive_all_the_same(user: User) -> None:
    await coordinated(user)
    member = (await user.send(joining_of("g"), 3)).member_id

    assert await beat(user, member) == 0


@pytest.mark.parametrize("version", [3, 4])
async def test_an_unknown_instance_is_an_unknown_member(user: User, version: int) -> None:
    member = await only_member(user, "g")

    got = await beat(user, member, version=version, group_instance_id="stranger")

    assert got == ErrorCode.UNKNOWN_MEMBER_ID


async def test_without_the_offsets_topic_there_is_no_coordinator(user: User) -> None:
    assert await beat(user, "m") == ErrorCode.NOT_COORDINATOR
