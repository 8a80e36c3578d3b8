"""The active controller: answers after commit and publishing, decisions ahead of the commit, restarts."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster.features import bootstrap_records
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.events import AllocateProducerIds, NewTopic, ProducerIdBlock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from tests.support.metadata import VERSION, Node


async def test_a_new_log_begins_as_kafkas_does() -> None:
    node = Node()
    await node.replica.start()
    assert node.records() == [
        m.BeginTransactionRecord(name="Bootstrap records"),
        *bootstrap_records(),
        m.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        m.EndTransactionRecord(),
    ]
    image = node.image
    assert image.metadata_version == 30
    assert image.config(ResourceType.BROKER, "") == {"min.insync.replicas": "1"}
    assert image.offset == node.log.state.log_end_offset - 1


async def test_a_topic_is_answered_when_it_is_on_disk_and_shown_before_the_answer() -> None:
    node = Node()
    await node.start()
    order: list[object] = []
    node.publisher.subscribe(lambda old, new: order.append(("image", sorted(new.topics), sorted(old.topics))))
    node.free.clear()
    creation = asyncio.ensure_future(node.create_topics(NewTopic("orders")))
    creation.add_done_callback(lambda _: order.append("answer"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (order, creation.done(), dict(node.image.topics)) == ([], False, {})

    node.free.set()
    [result] = await creation
    await asyncio.sleep(0)

    assert order == [("image", ["orders"], []), "answer"]
    assert (result.error, result.num_partitions, any(result.topic_id)) == (ErrorCode.NONE, 1, True)
    assert node.image.topics["orders"].topic_id == result.topic_id


async def test_decisions_build_on_what_is_not_committed_yet() -> None:
    node = Node()
    await node.start()
    node.free.clear()
    twice = [asyncio.ensure_future(node.create_topics(NewTopic("orders"))) for _ in range(2)]
    await asyncio.sleep(0)
    node.free.set()
    results = [result for [result] in await asyncio.gather(*twice)]
    assert [result.error for result in results] == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


async def test_a_transaction_that_a_crash_left_open_is_aborted() -> None:
    node = Node()
    await node.start()
    half = [m.BeginTransactionRecord(name="half"), m.TopicRecord(name="ghost", topic_id=b"g" * 16)]
    node.replica.host.append(half, VERSION)
    await node.close()

    after = Node(node.files.killed())
    await after.start()

    assert "ghost" not in after.image.topics
    assert m.AbortTransactionRecord(reason="Controller failover") in after.records()
    await after.create_topics(NewTopic("orders"))
    assert list(after.image.topics) == ["orders"]


async def test_ten_thousand_partitions_and_more_leave_and_come_back() -> None:
    node = Node()
    await node.start()
    for number in range(3):
        await node.create_topics(NewTopic(f"t{number}", num_partitions=4_000))
    await node.shut_down_broker()
    await node.close()

    after = Node(node.files.killed())
    await after.start(previous_broker_epoch=node.broker_epoch)

    leaders = {p.leader for topic in after.image.topics.values() for p in topic.partitions.values()}
    assert leaders == {1}


async def test_producer_ids_go_on_after_a_crash() -> None:
    node = Node()
    controller = await node.start()
    assert await controller.ask(AllocateProducerIds(1, node.broker_epoch)) == ProducerIdBlock(0, 1_000)
    after = Node(node.files.power_cut())
    controller = await after.start()
    assert await controller.ask(AllocateProducerIds(1, after.broker_epoch)) == ProducerIdBlock(1_000, 1_000)
    with pytest.raises(KafkaError) as refused:
        await controller.ask(AllocateProducerIds(1, node.broker_epoch))
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_everything_acknowledged_survives_a_power_cut() -> None:
    node = Node()
    await node.start()
    topics = [NewTopic(f"t{number}", configs=(("retention.ms", "5"),)) for number in range(20)]
    await asyncio.gather(*(node.create_topics(topic) for topic in topics))
    before = node.image

    after = Node(node.files.power_cut())
    await after.replica.start()

    image = after.image
    assert (image.topics, image.configs, image.features) == (before.topics, before.configs, before.features)
    assert (image.brokers, image.epoch) == (before.brokers, 2)


async def test_a_clean_stop_and_start_lead_again_without_a_doubt() -> None:
    node = Node()
    await node.start()
    await node.create_topics(NewTopic("orders"))
    await node.shut_down_broker()
    assert node.image.topics["orders"].partitions[0].leader == -1
    await node.close()

    after = Node(node.files.killed())
    await after.start(previous_broker_epoch=node.broker_epoch)

    partition = after.image.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 0)
