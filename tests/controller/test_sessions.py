"""Brokers elsewhere that fall silent are fenced when their sessions are over."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.controller.core.events import BrokerHeartbeat, NewTopic
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.support.metadata import Node, heartbeat_of

SESSION_MS = 9_000


async def join(node: Node, broker_id: int) -> int:
    """Let a broker elsewhere register and be unfenced; its epoch."""
    epoch = await node.register(broker_id)
    await heartbeat_of(node, broker_id, epoch)
    return epoch


async def beat(node: Node, broker_id: int) -> None:
    broker = node.image.brokers[broker_id]
    offset = node.image.offset
    await node.role.ask(BrokerHeartbeat(broker_id, broker.epoch, offset))


def fenced(node: Node) -> list[int]:
    return [broker.broker_id for broker in node.image.brokers.values() if broker.fenced]


async def test_a_broker_is_fenced_when_it_has_been_silent_for_a_session() -> None:
    node = Node()
    await node.start()
    await join(node, 2)

    await node.clock.pass_time(SESSION_MS - 1)
    assert fenced(node) == []
    await node.clock.pass_time(1)
    assert fenced(node) == [2]


async def test_a_heartbeat_that_unfences_too_late_is_counted_as_timed_out() -> None:
    node = Node()
    await node.start()
    epoch = await node.register(2)
    node.free.clear()
    heartbeat = BrokerHeartbeat(2, epoch, node.image.offset)
    answer = asyncio.ensure_future(node.role.ask(heartbeat, 1_000))
    await node.clock.pass_time(1_000)

    with pytest.raises(KafkaError) as late:
        await answer
    assert late.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert (node.role.timed_out, node.role.timed_out_heartbeats) == (1, 1)


async def test_each_heartbeat_begins_a_new_session() -> None:
    node = Node()
    await node.start()
    await join(node, 2)
    for _ in range(5):
        await node.clock.pass_time(SESSION_MS - 1)
        await beat(node, 2)

    assert fenced(node) == []
    await node.clock.pass_time(SESSION_MS)
    assert fenced(node) == [2]


@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
async def test_setting_the_wall_clock_neither_ends_nor_prolongs_a_session(by_ms: int) -> None:
    node = Node()
    await node.start()
    for broker_id in (2, 3, 4):
        await join(node, broker_id)
    await node.clock.pass_time(5_000)

    node.clock.set_wall_clock(by_ms)
    await beat(node, 3)
    await node.clock.pass_time(2_000)
    assert fenced(node) == []
    await node.clock.pass_time(SESSION_MS - 7_000)

    assert fenced(node) == [2, 4]
    await node.clock.pass_time(5_000)
    assert fenced(node) == [2, 3, 4]


async def test_the_broker_in_the_controllers_process_needs_no_heartbeats() -> None:
    node = Node()
    await node.start()

    await node.clock.pass_time(100 * SESSION_MS)

    assert fenced(node) == []


async def test_all_silent_brokers_are_fenced_and_their_leaderships_end() -> None:
    node = Node()
    await node.start()
    for broker_id in (2, 3):
        await join(node, broker_id)
    await node.create_topics(NewTopic("orders", num_partitions=3))
    assert sorted(p.leader for p in node.image.topics["orders"].partitions.values()) == [1, 2, 3]

    await node.clock.pass_time(SESSION_MS)

    assert fenced(node) == [2, 3]
    assert sorted(p.leader for p in node.image.topics["orders"].partitions.values()) == [-1, -1, 1]


async def test_a_fenced_broker_comes_back_with_its_next_heartbeat() -> None:
    node = Node()
    await node.start()
    await join(node, 2)
    await node.clock.pass_time(SESSION_MS)

    await beat(node, 2)

    assert fenced(node) == []
    await node.clock.pass_time(SESSION_MS)
    assert fenced(node) == [2]


async def test_a_new_controller_gives_every_broker_a_whole_session_to_find_it() -> None:
    node = Node()
    await node.start()
    await join(node, 2)
    await node.close()
    after = Node(node.files.killed())
    await after.start()

    await after.clock.pass_time(SESSION_MS - 1)
    assert fenced(after) == []
    await after.clock.pass_time(1)
    assert fenced(after) == [2]
