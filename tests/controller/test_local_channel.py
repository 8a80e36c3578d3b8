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
    Heartbeat,
    NewConfigs,
    NewPartitions,
    NewTopic,
)
from pykafka_broker.cluster.image import RegisteredEndpoint, ResourceType
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.controller.local_channel import LocalControllerChannel
from pykafka_broker.machine.wall_timers import WallTimers
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


class TwoBrokers:
    """Each leads a partition; both are registered with the controller of node 1."""

    async def start(self) -> None:
        self.node = Node()
        self.first = await self.node.start()
        rules = ControllerRules(2, self.node.image.cluster_id)
        self.second = LocalControllerChannel(self.node.role, rules, WallTimers(self.node.clock))
        self.second_epoch = await self.second.register_broker(
            incarnation_id=random_uuid(),
            listeners={"PLAINTEXT": RegisteredEndpoint("localhost", 9094)},
            directories=[b"d" * 16],
        )
        await self.second.unfence_broker(self.second_epoch)
        await self.first.create_topics([NewTopic("orders", num_partitions=2)])

    def stop_first(self) -> asyncio.Future[None]:
        return asyncio.ensure_future(self.first.shut_down_broker(self.node.broker_epoch))


async def test_a_broker_stops_when_the_others_know_who_leads_now():
    brokers = TwoBrokers()
    await brokers.start()
    stop = brokers.stop_first()
    await brokers.node.clock.pass_time(5_000)
    assert not stop.done()

    await brokers.second.unfence_broker(brokers.second_epoch)  # any heartbeat says how far it has come
    await brokers.node.clock.pass_time(1_000)
    assert stop.done()
    assert stop.exception() is None
    assert brokers.node.image.brokers[1].fenced


async def test_a_broker_that_stops_does_not_wait_for_one_whose_session_is_over():
    brokers = TwoBrokers()
    await brokers.start()
    stop = brokers.stop_first()
    await brokers.node.clock.pass_time(8_900)
    assert not stop.done()

    await brokers.node.clock.pass_time(1_000)
    await stop
    assert [broker.fenced for broker in brokers.node.image.brokers.values()] == [True, True]


async def test_a_broker_that_stops_does_not_wait_for_ever_for_one_that_does_not_catch_up():
    brokers = TwoBrokers()
    await brokers.start()
    behind = brokers.node.image.brokers[2].record_offset
    stop = brokers.stop_first()
    for _ in range(10):
        await brokers.node.clock.pass_time(1_000)
        await brokers.node.role.result_of(
            lambda token: Heartbeat(token, brokers.node.clock.now_ms(), 2, brokers.second_epoch, behind)
        )

    with pytest.raises(KafkaError, match="have not confirmed") as refused:
        await stop
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
