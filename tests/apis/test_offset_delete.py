"""OffsetDelete (47): delete a group's offsets of topics that none of its members subscribes to."""

from __future__ import annotations

import struct
from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import committing_of, coordinated, only_member
from tests.support.members import Member


async def deleted(user: User, group: str, **topics: list[int]) -> tuple[int, dict[tuple[str, int], int]]:
    """The group's error, and that of every partition."""
    asked = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for name, indexes in topics.items()
    ]
    answer: Any = await user.send(OffsetDeleteRequest(group_id=group, topics=asked), 0)
    errors = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
    return answer.error_code, errors


def subscription(topic: str) -> bytes:
    """What a consumer's JoinGroup says it reads."""
    name = topic.encode()
    return struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)


async def test_deleted_offsets_are_gone_and_others_stay(user: User) -> None:
    await user.create_topic("t", 2)
    for partition in (0, 1):
        await user.commit("g", "t", 5, partition=partition)

    assert await deleted(user, "g", t=[0]) == (0, {("t", 0): 0})
    assert await user.committed("g") == {("t", 1): 5}


async def test_what_was_never_committed_is_deleted_without_complaint(user: User) -> None:
    await user.create_topic("t", 2)
    await user.commit("g", "t", 5)

    assert await deleted(user, "g", t=[1]) == (0, {("t", 1): 0})


async def test_unknown_partitions_are_refused_one_by_one(user: User) -> None:
    await user.create_topic("t")
    await user.commit("g", "t", 5)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await deleted(user, "g", t=[0, 9], missing=[0]) == (
        0,
        {("t", 0): 0, ("t", 9): unknown, ("missing", 0): unknown},
    )


async def test_a_topic_that_a_member_reads_keeps_its_offsets(user: User) -> None:
    await user.create_topic("read")
    await user.create_topic("unread")
    member = await only_member(user, "g", protocols=[("range", subscription("read"))])
    for topic in ("read", "unread"):
        await user.send(committing_of("g", topic, 5, member=Member(member, 1)), 9)

    assert await deleted(user, "g", read=[0], unread=[0]) == (
        0,
        {("read", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("unread", 0): 0},
    )


async def test_an_unknown_group_has_no_offsets(user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)

    assert await deleted(user, "unknown", t=[0]) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
