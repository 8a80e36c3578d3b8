"""DeleteShareGroupOffsets (92): forget where share groups without members read topics."""

from __future__ import annotations

import logging

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import NO_ID, coordinated, only_member
from tests.apis.share_members import described, emptied, forgotten, sharing, without_share_groups

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def refused(error: ErrorCode, message: str) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=message, responses=[])


def topic(
    name: str, topic_id: bytes = NO_ID, error: ErrorCode = ErrorCode.NONE, message: str | None = None
) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, topic_id=topic_id, error_code=error, error_message=message
    )


async def test_a_group_forgets_a_topic_and_others_are_refused_alone(
    home: Home, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    topic_id = await emptied(home, user)
    await user.create_topic("u")

    assert await forgotten(user, "v", "t", "u") == DeleteShareGroupOffsetsResponse(
        error_code=0,
        responses=[
            topic("t", topic_id),
            topic("v", NO_ID, UNKNOWN, UNKNOWN.message),
            topic("u", NO_ID, UNKNOWN, "There is no offset information to delete."),
        ],
    )
    assert (await described(user)).topics == []
    [line] = [text for text in caplog.messages if text.startswith("Deleted share offsets")]
    assert line.endswith(" of topics: t, as User:ANONYMOUS at 127.0.0.1 asked.")


async def test_a_group_with_members_keeps_its_offsets(home: Home, user: User) -> None:
    await sharing(home, user)
    assert await forgotten(user, "t") == refused(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    assert len((await described(user)).topics) == 1


async def test_what_is_no_share_group_has_no_such_offsets(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    not_found, none = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID
    assert await forgotten(user, "t", group_id="classic") == refused(
        not_found, "Group classic is not a share group."
    )
    assert await forgotten(user, "t", group_id="none") == refused(not_found, "Group none not found.")
    assert await forgotten(user, "t", group_id="") == refused(none, none.message)


async def test_without_the_feature_there_are_no_share_groups(user: User) -> None:
    await coordinated(user)
    await without_share_groups(user)
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert await forgotten(user, "t") == refused(unsupported, unsupported.message)
