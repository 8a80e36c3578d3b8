"""What a node asks of its own controller: topics, configs, brokers, and the patience of callers."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster.events import (
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    FeatureUpdate,
    NewConfigs,
    NewPartitions,
    NewTopic,
)
from pykafka_broker.cluster.image import RegisteredEndpoint, ResourceType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid
from tests.support.metadata import Node

ZERO = bytes(16)


async def test_a_caller_without_time_left_gets_a_timeout_and_no_topic():
    node = Node()
    controller = await node.start()
    timed_out = CreateTopicResult("orders", ErrorCode.REQUEST_TIMED_OUT)
    assert await controller.create_topics([NewTopic("orders")], timeout_ms=0) == (timed_out,)
    assert not node.image.topics
    assert await controller.delete_topics([("orders", ZERO)], timeout_ms=0) == (
        DeleteTopicResult("orders", ZERO, ErrorCode.REQUEST_TIMED_OUT),
    )
    assert await controller.create_partitions([NewPartitions("orders", 2)], timeout_ms=0) == (
        CreatePartitionsResult("orders", ErrorCode.REQUEST_TIMED_OUT),
    )


async def test_a_change_that_takes_too_long_is_answered_in_time_and_may_still_happen():
    node = Node()
    controller = await node.start()
    node.free.clear()
    creation = asyncio.ensure_future(controller.create_topics([NewTopic("orders")], timeout_ms=1_000))
    await node.clock.pass_time(999)
    assert not creation.done()
    await node.clock.pass_time(1)
    assert await creation == (CreateTopicResult("orders", ErrorCode.REQUEST_TIMED_OUT),)

    node.free.set()
    await node.close()
    assert list(node.image.topics) == ["orders"]


async def test_a_deadline_that_is_met_leaves_no_timer_behind():
    node = Node()
    controller = await node.start()
    before = node.clock.pending_timers
    await controller.create_topics([NewTopic("orders")], timeout_ms=1_000)
    assert node.clock.pending_timers == before


async def test_topics_grow_and_go():
    node = Node()
    controller = await node.start()
    await controller.create_topics([NewTopic("orders")])
    assert await controller.create_partitions([NewPartitions("orders", 3)]) == (
        CreatePartitionsResult("orders"),
    )
    assert len(node.image.topics["orders"].partitions) == 3
    topic_id = node.image.topics["orders"].topic_id
    assert await controller.delete_topics([("orders", ZERO)]) == (DeleteTopicResult("orders", topic_id),)
    assert not node.image.topics


async def test_a_request_that_is_refused_as_a_whole_is_refused_topic_by_topic():
    node = Node()
    controller = await node.start()
    topics = [NewTopic("a", num_partitions=6_000), NewTopic("b", num_partitions=6_000)]
    text = "Excessively large number of partitions per request."
    assert await controller.create_topics(topics) == (
        CreateTopicResult("a", ErrorCode.POLICY_VIOLATION, text),
        CreateTopicResult("b", ErrorCode.POLICY_VIOLATION, text),
    )


async def test_configs_are_answered_in_the_order_asked_even_where_some_are_refused():
    node = Node()
    controller = await node.start()
    await controller.create_topics([NewTopic("orders")])

    def change(kind, name, *keys):
        return ConfigChange(kind, name, tuple((key, ConfigOperation.SET, "1") for key in keys))

    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    results = await controller.incremental_alter_configs(
        [
            change(topic, "nope", "a"),
            change(broker, "7", "a"),
            change(topic, "orders", "a"),
            change(broker, "1", "a"),
            change(broker, "1", "b"),
        ]
    )

    twice = AlterConfigsResult(
        broker, "1", ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
    )
    assert results == (
        AlterConfigsResult(
            topic, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."
        ),
        AlterConfigsResult(
            broker, "7", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 7"
        ),
        AlterConfigsResult(topic, "orders"),
        twice,
        twice,
    )
    assert node.image.config(topic, "orders") == {"a": "1"}
    await controller.alter_configs([NewConfigs(topic, "orders", (("b", "2"),))])
    assert node.image.config(topic, "orders") == {"b": "2"}


async def test_controllers_register_features_are_updated_brokers_are_forgotten():
    node = Node()
    controller = await node.start()
    await controller.register_controller(random_uuid(), {"CONTROLLER": RegisteredEndpoint("localhost", 9093)})
    assert node.image.controllers[1].listeners == {"CONTROLLER": RegisteredEndpoint("localhost", 9093)}
    with pytest.raises(KafkaError, match="does not support this feature"):
        await controller.update_features([FeatureUpdate("nonsense.version", 1)])
    await controller.unregister_broker(1)
    assert node.image.brokers == {}
