"""What a node asks of its own controller: topics, configs, brokers, and the patience of callers."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import RegisteredEndpoint, ResourceType
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.events import (
    AlterConfigs,
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    CreatePartitions,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    DeleteTopics,
    FeatureUpdate,
    IncrementalAlterConfigs,
    NewConfigs,
    NewPartitions,
    NewTopic,
    RegisterController,
    UnregisterBroker,
    UpdateFeatures,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid
from tests.support.metadata import Node

ZERO = bytes(16)


async def test_a_caller_without_time_left_gets_a_timeout_and_no_topic() -> None:
    node = Node()
    controller = await node.start()
    timed_out = CreateTopicResult("orders", ErrorCode.REQUEST_TIMED_OUT)
    assert await node.create_topics(NewTopic("orders"), timeout_ms=0) == (timed_out,)
    assert not node.image.topics
    deletion = DeleteTopics((("orders", ZERO),))
    assert await each_result(deletion, controller.ask(deletion, 0)) == (
        DeleteTopicResult("orders", ZERO, ErrorCode.REQUEST_TIMED_OUT),
    )
    growth = CreatePartitions((NewPartitions("orders", 2),))
    assert await each_result(growth, controller.ask(growth, 0)) == (
        CreatePartitionsResult("orders", ErrorCode.REQUEST_TIMED_OUT),
    )


async def test_a_change_that_takes_too_long_is_answered_in_time_and_may_still_happen() -> None:
    node = Node()
    await node.start()
    node.free.clear()
    creation = asyncio.ensure_future(node.create_topics(NewTopic("orders"), timeout_ms=1_000))
    await node.clock.pass_time(999)
    assert not creation.done()
    await node.clock.pass_time(1)
    assert await creation == (CreateTopicResult("orders", ErrorCode.REQUEST_TIMED_OUT),)
    assert (node.role.timed_out, node.role.timed_out_heartbeats) == (1, 0)

    node.free.set()
    await node.close()
    assert list(node.image.topics) == ["orders"]


async def test_a_deadline_that_is_met_leaves_no_timer_behind() -> None:
    node = Node()
    await node.start()
    before = node.clock.pending_timers
    await node.create_topics(NewTopic("orders"), timeout_ms=1_000)
    assert node.clock.pending_timers == before


async def test_topics_grow_and_go() -> None:
    node = Node()
    controller = await node.start()
    await node.create_topics(NewTopic("orders"))
    assert await controller.ask(CreatePartitions((NewPartitions("orders", 3),))) == (
        CreatePartitionsResult("orders"),
    )
    assert len(node.image.topics["orders"].partitions) == 3
    topic_id = node.image.topics["orders"].topic_id
    assert await controller.ask(DeleteTopics((("orders", ZERO),))) == (DeleteTopicResult("orders", topic_id),)
    assert not node.image.topics


async def test_a_request_that_is_refused_as_a_whole_is_refused_topic_by_topic() -> None:
    node = Node()
    await node.start()
    text = "Excessively large number of partitions per request."
    assert await node.create_topics(
        NewTopic("a", num_partitions=6_000), NewTopic("b", num_partitions=6_000)
    ) == (
        CreateTopicResult("a", ErrorCode.POLICY_VIOLATION, text),
        CreateTopicResult("b", ErrorCode.POLICY_VIOLATION, text),
    )


async def test_configs_are_answered_in_the_order_asked_even_where_some_are_refused() -> None:
    node = Node()
    controller = await node.start()
    await node.create_topics(NewTopic("orders"))

    def change(kind: ResourceType, name: str, *keys: str) -> ConfigChange:
        return ConfigChange(kind, name, tuple((key, ConfigOperation.SET, "1") for key in keys))

    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    asked = (change(topic, "nope", "a"), change(topic, "orders", "a"), change(broker, "1", "a"))
    results = await controller.ask(IncrementalAlterConfigs(asked))

    assert results == (
        AlterConfigsResult(
            topic, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."
        ),
        AlterConfigsResult(topic, "orders"),
        AlterConfigsResult(broker, "1"),
    )
    assert node.image.config(topic, "orders") == {"a": "1"}
    await controller.ask(AlterConfigs((NewConfigs(topic, "orders", (("b", "2"),)),)))
    assert node.image.config(topic, "orders") == {"b": "2"}


async def test_controllers_register_features_are_updated_brokers_are_forgotten() -> None:
    node = Node()
    controller = await node.start()
    listeners = {"CONTROLLER": RegisteredEndpoint("localhost", 9093)}
    await controller.ask(RegisterController(1, random_uuid(), listeners, NODE_FEATURES))
    assert node.image.controllers[1].listeners == listeners
    with pytest.raises(KafkaError, match="does not support this feature"):
        await controller.ask(UpdateFeatures((FeatureUpdate("nonsense.version", 1),)))
    await controller.ask(UnregisterBroker(1))
    assert node.image.brokers == {}
