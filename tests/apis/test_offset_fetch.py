"""OffsetFetch (9): how far groups have read."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.offset_fetch import offset_fetch
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import UNKNOWN_ID, Topic, committing_of, coordinated, every, named, offsets_of

OLD = [version for version in every(offset_fetch) if version < 8]
NEW = [version for version in every(offset_fetch) if version >= 8]


def asking(group: str, *topics: tuple[str, list[int]], everything: bool = False) -> OffsetFetchRequest:
    """A request before v8."""
    asked = [
        OffsetFetchRequestTopic(name=topic, partition_indexes=partitions) for topic, partitions in topics
    ]
    return OffsetFetchRequest(group_id=group, topics=None if everything else asked)


async def committed(user: User) -> bytes:
    """Offset 5 of t-0 committed by group g, nothing of t-1; t's id."""
    await coordinated(user)
    topic_id = await user.create_topic("t", 2)
    await user.send(committing_of("g", "t", 5, metadata="m", leader_epoch=3), 9)
    return topic_id


def old(offset: int, index: int = 0, epoch: int = -1, metadata: str = "") -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        metadata=metadata,
        error_code=0,
    )


def new(offset: int, index: int = 0, epoch: int = -1, metadata: str = "") -> Any:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        metadata=metadata,
        error_code=0,
    )


@pytest.mark.parametrize("version", OLD)
async def test_before_version_8_one_group_is_asked(user: User, version: int) -> None:
    await committed(user)

    answer = await user.send(asking("g", ("t", [0, 1])), version)

    epoch = 3 if version >= 5 else -1
    partitions = [old(5, 0, epoch, "m"), old(-1, 1)]
    topic = OffsetFetchResponseTopic(name="t", partitions=partitions)
    assert answer == OffsetFetchResponse(topics=[topic])


@pytest.mark.parametrize("version", NEW)
async def test_from_version_8_on_many_are(user: User, version: int) -> None:
    topic_id = await committed(user)
    topic: Topic = topic_id if version >= 10 else "t"
    request = offsets_of("g", (topic, [0, 1]))
    request.groups += offsets_of("unknown", (topic, [0])).groups

    answer = await user.send(request, version)

    def found(group: str, *partitions: Any) -> OffsetFetchResponseGroup:
        topics = [OffsetFetchResponseTopics(**named(topic), partitions=list(partitions))]
        return OffsetFetchResponseGroup(group_id=group, topics=topics)

    assert answer == OffsetFetchResponse(
        groups=[found("g", new(5, 0, 3, "m"), new(-1, 1)), found("unknown", new(-1))]
    )


@pytest.mark.parametrize("version", [v for v in OLD if v >= 2])
async def test_no_list_of_topics_means_all_that_is_committed(user: User, version: int) -> None:
    await committed(user)

    answer = await user.send(asking("g", everything=True), version)

    assert [(t.name, [p.committed_offset for p in t.partitions]) for t in answer.topics] == [("t", [5])]


@pytest.mark.parametrize("version", NEW)
async def test_no_list_of_topics_means_all_for_each_group(user: User, version: int) -> None:
    topic_id = await committed(user)

    [group] = (await user.send(offsets_of("g"), version)).groups

    [topic] = group.topics
    assert (topic.topic_id if version >= 10 else topic.name) == (topic_id if version >= 10 else "t")
    assert [p.committed_offset for p in topic.partitions] == [5]


async def test_an_empty_list_of_topics_means_none(user: User) -> None:
    await committed(user)
    group = OffsetFetchRequestGroup(group_id="g", topics=[])

    assert (await user.send(asking("g"), 7)).topics == []
    [answer] = (await user.send(OffsetFetchRequest(groups=[group]), 8)).groups
    assert answer.topics == []


@pytest.mark.parametrize("version", every(offset_fetch))
async def test_an_unknown_group_or_topic_has_no_offsets_and_that_is_no_error(
    user: User, version: int
) -> None:
    await coordinated(user)

    if version < 8:
        answer = await user.send(asking("unknown", ("missing", [0])), version)
        assert (answer.error_code, answer.topics[0].partitions) == (0, [old(-1)])
    elif version < 10:
        [group] = (await user.send(offsets_of("unknown", ("missing", [0])), version)).groups
        assert (group.error_code, group.topics[0].partitions) == (0, [new(-1)])


async def test_an_unknown_topic_id_is_an_error(user: User) -> None:
    await committed(user)

    [group] = (await user.send(offsets_of("g", (UNKNOWN_ID, [0])), 10)).groups

    [partition] = group.topics[0].partitions
    assert (partition.error_code, partition.committed_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
    assert group.error_code == 0


async def test_offsets_of_a_deleted_topic_are_forgotten(user: User) -> None:
    await committed(user)

    await user.delete_topic("t")
    await user.create_topic("t")

    assert await user.committed("g") == {}


@pytest.mark.parametrize("version", [7, 8, 10])
async def test_without_transactions_every_offset_is_stable(user: User, version: int) -> None:
    topic_id = await committed(user)
    request = asking("g", ("t", [0])) if version < 8 else None
    request = request or offsets_of("g", (topic_id if version >= 10 else "t", [0]))
    request.require_stable = True

    answer = await user.send(request, version)

    topics = answer.topics if version < 8 else answer.groups[0].topics
    assert [p.committed_offset for p in topics[0].partitions] == [5]


@pytest.mark.parametrize("version", [9, 10])
async def test_only_members_may_say_which_member_they_are(user: User, version: int) -> None:
    topic_id = await committed(user)
    asked = OffsetFetchRequestTopics(**named(topic_id if version >= 10 else "t"), partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=4, topics=[asked])

    [answer] = (await user.send(OffsetFetchRequest(groups=[group]), version)).groups

    assert (answer.error_code, answer.topics[0].partitions) == (0, [new(5, 0, 3, "m")])


@pytest.mark.parametrize("version", every(offset_fetch))
async def test_without_the_offsets_topic_there_is_no_coordinator_and_no_offsets_are_answered(
    user: User, version: int
) -> None:
    await user.create_topic("t")
    wrong = ErrorCode.NOT_COORDINATOR

    if version >= 8:
        [group] = (await user.send(offsets_of("g"), version)).groups
        assert (group.error_code, group.topics) == (wrong, [])
        return
    answer = await user.send(asking("g", ("t", [0])), version)
    if version == 1:
        assert [p.error_code for p in answer.topics[0].partitions] == [wrong]
    else:
        assert (answer.error_code, answer.topics) == (wrong, [])
