"""Automatic topic creation: once, however many requests ask, with the broker's defaults."""

from __future__ import annotations

import asyncio
import errno

import pytest

from pykafka_broker.cluster.deleted_topics import REMEMBERED_MS, UNKNOWN_MS
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import TOPIC_RESOURCE, User


def asking_for(*names: str) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=True)


async def test_many_who_ask_for_the_same_missing_topic_cause_one_creation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home({"num.partitions": "3"})
    async with home.running():
        users = [await User.connect(home.broker.bootstrap_servers) for _ in range(10)]
        offset = home.broker.node.image.offset
        answers = await asyncio.gather(*[user.send(asking_for("orders"), 12) for user in users])
        assert home.broker.node.image.offset == offset + 4, "one topic record, three partition records"
        for user in users:
            await user.close()
    assert {answer.topics[0].topic_id for answer in answers} == {
        home.broker.node.image.topics["orders"].topic_id
    }
    assert [len(answer.topics[0].partitions) for answer in answers] == [3] * 10
    assert not caplog.records


async def test_invalid_names_are_left_alone_and_valid_ones_beside_them_created() -> None:
    async with Home().running() as user:
        answer = await user.send(asking_for("a b", "fine", ".."), 12)
        codes = {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}
        assert codes == {
            "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "fine": ErrorCode.NONE,
            "..": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert list(await user.topics()) == ["fine"]


async def test_nothing_is_created_where_that_is_switched_off() -> None:
    async with Home({"auto.create.topics.enable": "false"}).running() as user:
        answer = await user.send(asking_for("orders"), 12)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await user.topics() == {}


async def test_the_offsets_topic_is_made_as_kafka_makes_it() -> None:
    overrides = {"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "1048576"}
    async with Home({**overrides, "offsets.topic.replication.factor": "3"}).running() as user:
        await user.find_coordinator("readers")
        [topic] = (await user.metadata("__consumer_offsets")).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 7)
        assert [partition.replica_nodes for partition in topic.partitions] == [[1]] * 7, "one broker is alive"
        configs = {
            key: await user.config(TOPIC_RESOURCE, "__consumer_offsets", key)
            for key in ("cleanup.policy", "compression.type", "segment.bytes")
        }
    assert configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "1048576",
    }


async def test_a_creation_that_fails_is_one_line_and_can_be_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home()
    async with home.running() as user:
        home.files.fail("pwrite", errno.ENOSPC, path="__cluster_metadata-0")
        answer = await user.send(asking_for("orders"), 12)
        assert answer.topics[0].error_code != ErrorCode.NONE
        full, failed = [record.message for record in caplog.records]
        assert full.startswith("/data takes no more records")
        assert failed.startswith("Topic orders could not be created: KAFKA_STORAGE_ERROR")
        answer = await user.send(asking_for("orders"), 12)
        assert answer.topics[0].error_code == ErrorCode.NONE


async def codes_of(user: User, name: str, times: int, version: int = 12) -> list[ErrorCode]:
    """The error codes of as many Metadata requests that would create the topic."""
    answers = [(await user.send(asking_for(name), version)).topics[0].error_code for _ in range(times)]
    return [ErrorCode(code) for code in answers]


async def test_a_just_deleted_topic_is_unknown_for_a_moment_and_then_created() -> None:
    home = Home()
    async with home.running() as user:
        for version in range(14):
            await user.create_topic("orders")
            await user.delete_topic("orders")
            unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
            assert await codes_of(user, "orders", 2, version) == unknown
            assert await user.topics() == {}, "an answer that there is none does not make one"
            await home.pass_time(UNKNOWN_MS)
            assert await codes_of(user, "orders", 2, version) == [ErrorCode.NONE, ErrorCode.NONE]
            await user.delete_topic("orders")


async def test_requests_that_create_nothing_do_not_count_as_the_first_after_a_deletion() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.delete_topic("orders")
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False
        )
        answers = [await user.send(request, 12) for _ in range(2)]
        assert [answer.topics[0].error_code for answer in answers] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        await home.pass_time(UNKNOWN_MS)
        assert await codes_of(user, "orders", 1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await home.pass_time(UNKNOWN_MS)
        assert await codes_of(user, "orders", 1) == [ErrorCode.NONE]


async def test_a_just_deleted_topic_that_was_created_again_is_described() -> None:
    async with Home().running() as user:
        await user.create_topic("orders")
        await user.delete_topic("orders")
        await user.create_topic("orders", 2)
        assert await codes_of(user, "orders", 1) == [ErrorCode.NONE]
        assert len((await user.metadata("orders")).topics[0].partitions) == 2


async def test_a_topic_that_was_deleted_a_minute_ago_is_created_by_the_first_request() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.delete_topic("orders")
        await home.pass_time(REMEMBERED_MS)
        assert await codes_of(user, "orders", 1) == [ErrorCode.NONE]


async def test_a_just_deleted_internal_topic_is_unknown_but_find_coordinator_creates_it_at_once() -> None:
    home = Home()
    async with home.running() as user:
        await user.find_coordinator("readers")
        await user.delete_topic("__consumer_offsets")
        assert await codes_of(user, "__consumer_offsets", 1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await home.pass_time(UNKNOWN_MS)
        assert await codes_of(user, "__consumer_offsets", 1) == [ErrorCode.NONE]
        await user.delete_topic("__consumer_offsets")
        await user.find_coordinator("readers")
        assert await codes_of(user, "__consumer_offsets", 1) == [ErrorCode.NONE]
