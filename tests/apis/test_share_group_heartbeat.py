"""ShareGroupHeartbeat (76): join, stay in and leave share groups."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated
from tests.apis.share_members import beat, beating, sharing, states_made, without_share_groups


def refused(error: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


async def test_members_get_partitions_once_the_share_coordinator_has_states_for_them(
    home: Home, user: User
) -> None:
    topic_id = await user.create_topic("t", partitions=2)
    await coordinated(user)

    joined = await beat(user)
    assert joined == ShareGroupHeartbeatResponse(
        error_code=0,
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=5_000,
        assignment=Assignment(topic_partitions=[]),
    )
    await states_made(home)
    await home.clock.pass_time(1_000)
    both = Assignment(topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=[0, 1])])
    assert await beat(user, "m", 2) == ShareGroupHeartbeatResponse(
        error_code=0, member_id="m", member_epoch=3, heartbeat_interval_ms=5_000, assignment=both
    )
    # No news.
    assert await beat(user, "m", 3) == ShareGroupHeartbeatResponse(
        error_code=0, member_id="m", member_epoch=3, heartbeat_interval_ms=5_000
    )


async def test_a_member_that_leaves_is_not_known_any_more(home: Home, user: User) -> None:
    await sharing(home, user)
    assert await beat(user, "m", -1) == ShareGroupHeartbeatResponse(
        error_code=0, member_id="m", member_epoch=-1, heartbeat_interval_ms=0
    )
    assert await beat(user, "m", 3) == refused(
        ErrorCode.UNKNOWN_MEMBER_ID, "Member m is not a member of group g."
    )


@pytest.mark.parametrize("member_id", ["", "m" * 37, "\U0001f600" * 19])
async def test_a_member_id_that_is_none_is_refused_without_a_word(user: User, member_id: str) -> None:
    await coordinated(user)
    assert await beat(user, member_id) == refused(ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("member_id", ["m" * 36, "\U0001f600" * 18])
async def test_a_member_id_may_be_as_long_as_a_uuid_with_dashes(user: User, member_id: str) -> None:
    await coordinated(user)
    assert (await beat(user, member_id)).member_id == member_id


@pytest.mark.parametrize(
    ("request_of", "message"),
    [
        (beating(" "), "MemberId can't be empty."),
        (beating(group_id=" "), "GroupId can't be empty."),
        (beating(rack_id=""), "RackId can't be empty."),
        (beating(subscribed_topic_names=[]), "SubscribedTopicNames must be set in first request."),
        (beating("m", -2), "MemberEpoch is invalid."),
    ],
)
async def test_a_heartbeat_that_says_too_little_is_told_what(
    user: User, request_of: ShareGroupHeartbeatRequest, message: str
) -> None:
    await coordinated(user)
    assert await user.send(request_of, 1) == refused(ErrorCode.INVALID_REQUEST, message)


async def test_where_nothing_is_coordinated_it_is_the_wrong_broker(user: User) -> None:
    assert (await beat(user)).error_code == ErrorCode.NOT_COORDINATOR
    assert await beat(user, group_id=" ") == refused(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")


async def test_without_the_feature_there_are_no_share_groups(user: User) -> None:
    await coordinated(user)
    await without_share_groups(user)
    assert await beat(user, "") == refused(ErrorCode.UNSUPPORTED_VERSION)
