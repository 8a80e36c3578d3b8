"""AlterShareGroupOffsets (91): set where share groups without members start reading."""

from __future__ import annotations

import base64
import logging

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import NO_ID, coordinated, only_member
from tests.apis.share_members import altered, described, emptied, offsets_in, sharing, without_share_groups

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def refused(error: ErrorCode, message: str) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=message, responses=[])


def topic(
    name: str, topic_id: bytes, *errors: tuple[int, ErrorCode, str | None]
) -> AlterShareGroupOffsetsResponseTopic:
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition, error_code=error, error_message=message
            )
            for partition, error, message in errors
        ],
    )


async def test_a_group_begins_where_it_is_told_to(
    home: Home, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    topic_id = await emptied(home, user)
    answer = await altered(user, {"t": {0: 7, 1: 8}})
    assert answer == AlterShareGroupOffsetsResponse(
        error_code=0,
        responses=[topic("t", topic_id, (0, ErrorCode.NONE, None), (1, ErrorCode.NONE, None))],
    )
    found = offsets_in(await described(user))
    assert {place: start for place, (start, _, _) in found.items()} == {("t", 0): 7, ("t", 1): 8}
    [line] = [text for text in caplog.messages if text.startswith("Altered share offsets")]
    assert line.endswith(": t-0 to 7, t-1 to 8, as User:ANONYMOUS at 127.0.0.1 asked.")


async def test_a_group_that_there_is_not_is_created(user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)
    await altered(user, {"t": {0: 7}}, group_id="new")
    listed = (await user.send(ListGroupsRequest(), 5)).groups
    assert [(each.group_id, each.group_type) for each in listed] == [("new", "share")]


async def test_what_there_is_not_is_refused_alone_and_unknown_topics_stand_in_front(
    home: Home, user: User
) -> None:
    topic_id = await emptied(home, user)
    answer = await altered(user, {"t": {0: 7, 5: 0}, "u": {0: 1}, "v": {}})
    assert answer.responses == [
        topic("u", NO_ID, (0, UNKNOWN, UNKNOWN.message)),
        topic("t", topic_id, (0, ErrorCode.NONE, None), (5, UNKNOWN, UNKNOWN.message)),
    ]


async def test_a_topic_that_is_named_twice_begins_where_both_say(
    home: Home, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    topic_id = await emptied(home, user)
    named = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name="t",
            partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)],
        )
        for index, offset in ((0, 7), (1, 8))
    ]
    answer = await user.send(AlterShareGroupOffsetsRequest(group_id="g", topics=named), 0)
    assert answer == AlterShareGroupOffsetsResponse(
        error_code=0,
        responses=[topic("t", topic_id, (0, ErrorCode.NONE, None), (1, ErrorCode.NONE, None))],
    )
    found = offsets_in(await described(user))
    assert {place: start for place, (start, _, _) in found.items()} == {("t", 0): 7, ("t", 1): 8}


async def test_a_negative_partition_spoils_the_request(home: Home, user: User) -> None:
    topic_id = await emptied(home, user)
    text = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
    assert await altered(user, {"t": {-1: 0, 0: 7}}) == refused(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"Initialize share group parameters has invalid partitionId - g {text} -1",
    )


async def test_a_group_with_members_keeps_its_offsets(home: Home, user: User) -> None:
    await sharing(home, user)
    assert await altered(user, {"t": {0: 7}}) == refused(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


async def test_what_is_no_share_group_has_no_such_offsets(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    assert await altered(user, {"t": {0: 7}}, group_id="classic") == refused(
        ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a share group."
    )
    none = ErrorCode.INVALID_GROUP_ID
    assert await altered(user, {"t": {0: 7}}, group_id="") == refused(none, none.message)


async def test_without_the_feature_there_are_no_share_groups(user: User) -> None:
    await coordinated(user)
    await without_share_groups(user)
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert await altered(user, {}) == refused(unsupported, unsupported.message)
