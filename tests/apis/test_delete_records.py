"""DeleteRecords (21): the start of a partition moves forward."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.delete_records import delete_records
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import EARLIEST, User
from tests.apis.asking import ends, partitions_of

VERSIONS = ends(delete_records)
HIGH_WATERMARK = -1


async def deleted(user: User, topic: str, offset: int, partition: int = 0, version: int = 2) -> Any:
    """Error and new low watermark."""
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=1_000
    )
    [answer] = partitions_of(await user.send(request, version))
    return answer.error_code, answer.low_watermark


async def filled(user: User) -> None:
    await user.create_topic("t")
    await user.produce("t", b"a", b"b")
    await user.produce("t", b"c", b"d")


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_lies_before_the_offset_is_never_served_again(user: User, version: int) -> None:
    await filled(user)

    assert await deleted(user, "t", 3, version=version) == (0, 3)

    assert await user.offset_for("t", EARLIEST) == 3
    assert (await user.fetch("t", 2)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await user.fetch("t", 3)).log_start_offset == 3


async def test_the_start_never_moves_back(user: User) -> None:
    await filled(user)
    await deleted(user, "t", 3)

    assert await deleted(user, "t", 1) == (0, 3)


async def test_the_high_watermark_as_offset_deletes_everything(user: User) -> None:
    await filled(user)

    assert await deleted(user, "t", HIGH_WATERMARK) == (0, 4)
    assert await user.values("t") == []
    assert await user.produce("t", b"e") == 4


async def test_the_new_start_outlives_a_restart(home: Home) -> None:
    async with home.running() as user:
        await filled(user)
        await deleted(user, "t", 2)
    async with home.running() as user:
        assert await user.values("t") == [b"c", b"d"]


@pytest.mark.parametrize("offset", [-2, 5])
@pytest.mark.parametrize("version", VERSIONS)
async def test_offsets_that_do_not_exist_are_out_of_range(user: User, version: int, offset: int) -> None:
    await filled(user)

    assert await deleted(user, "t", offset, version=version) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_partition_has_no_records(user: User, version: int) -> None:
    await filled(user)
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)

    assert await deleted(user, "t", 0, 9, version) == unknown
    assert await deleted(user, "missing", 0, version=version) == unknown


async def test_a_topic_that_is_only_compacted_keeps_its_records(user: User) -> None:
    await user.create_topic("compacted", cleanup_policy="compact")
    await user.create_topic("both", cleanup_policy="compact,delete")

    assert await deleted(user, "compacted", 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert await deleted(user, "both", 0) == (0, 0)


async def test_internal_topics_keep_theirs(user: User) -> None:
    assert await deleted(user, "__consumer_offsets", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    await user.find_coordinator("group")
    assert await deleted(user, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


async def test_of_a_partition_named_twice_the_last_offset_counts(user: User) -> None:
    await filled(user)
    twice = [
        DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        for offset in (3, 1)
    ]

    answer = await user.send(DeleteRecordsRequest(topics=twice, timeout_ms=1_000), 2)

    assert [(topic.name, [p.low_watermark for p in topic.partitions]) for topic in answer.topics] == [
        ("t", [1])
    ]
