"""Topics that come to be because somebody asked: once, however many ask, with the broker's defaults."""

from __future__ import annotations

import asyncio
import errno

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.broker import TOPIC_RESOURCE, Home, User


def asking_for(*names: str) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=True)


async def test_many_who_ask_for_the_same_missing_topic_cause_one_creation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home({"num.partitions": "3"})
    async with home.running():
        users = [await User.connect(home.broker.bootstrap_servers) for _ in range(10)]
        offset = home.broker.image.offset
        answers = await asyncio.gather(*[user.send(asking_for("orders"), 12) for user in users])
        assert home.broker.image.offset == offset + 4, "one topic record, three partition records"
        for user in users:
            await user.close()
    assert {answer.topics[0].topic_id for answer in answers} == {home.broker.image.topics["orders"].topic_id}
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
        [line] = [record.message for record in caplog.records]
        assert line.startswith("Topic orders could not be created: KAFKA_STORAGE_ERROR")
        answer = await user.send(asking_for("orders"), 12)
        assert answer.topics[0].error_code == ErrorCode.NONE
