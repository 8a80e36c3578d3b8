"""The active controller brings preferred leaders back by itself, and holds unclean elections once allowed."""

from __future__ import annotations

from pykafka_broker.cluster.image import PartitionRegistration, ResourceType
from pykafka_broker.controller.core.events import (
    AlterPartition,
    BrokerHeartbeat,
    ConfigChange,
    ConfigOperation,
    IncrementalAlterConfigs,
    IsrChange,
    IsrMember,
    NewTopic,
)
from tests.support.metadata import Node, heartbeat_of

INTERVAL_MS = 300_000
STEP_MS = 5_000


async def join(node: Node, broker_id: int) -> None:
    """Let a broker elsewhere register and be unfenced."""
    epoch = await node.register(broker_id)
    await heartbeat_of(node, broker_id, epoch)


async def beat(node: Node, broker_id: int, *, want_fence: bool = False) -> None:
    epoch, offset = node.image.brokers[broker_id].epoch, node.image.offset
    await node.role.ask(BrokerHeartbeat(broker_id, epoch, offset, want_fence))


async def pass_time(node: Node, duration_ms: int, *alive: int) -> None:
    """Pass time in which these brokers say that they live."""
    for _ in range(0, duration_ms, STEP_MS):
        await node.clock.pass_time(STEP_MS)
        for broker_id in alive:
            await beat(node, broker_id)


def orders(node: Node) -> PartitionRegistration:
    return node.image.topics["orders"].partitions[0]


async def test_a_preferred_leader_that_is_in_sync_again_leads_after_the_interval() -> None:
    node = Node()
    await node.start()
    await join(node, 2)
    await node.create_topics(NewTopic("orders", assignments=((0, (2, 1)),)))
    await beat(node, 2, want_fence=True)
    await beat(node, 2)
    assert orders(node).leader == 1
    in_sync = IsrChange(
        node.image.topics["orders"].topic_id,
        0,
        orders(node).leader_epoch,
        orders(node).partition_epoch,
        (IsrMember(1), IsrMember(2)),
    )
    epoch = node.image.brokers[1].epoch
    await node.role.ask(AlterPartition(1, epoch, (in_sync,)))

    await pass_time(node, INTERVAL_MS - STEP_MS, 2)
    assert (orders(node).leader, orders(node).isr) == (1, (1, 2))
    await pass_time(node, STEP_MS, 2)

    assert (orders(node).leader, orders(node).isr) == (2, (1, 2))


async def test_an_unclean_election_that_becomes_allowed_is_held_within_the_interval() -> None:
    node = Node()
    controller = await node.start()
    await join(node, 2)
    await node.create_topics(NewTopic("orders", assignments=((0, (2, 1)),)))
    await node.role.ask(
        AlterPartition(
            2,
            node.image.brokers[2].epoch,
            (IsrChange(node.image.topics["orders"].topic_id, 0, 0, 0, (IsrMember(2),)),),
        )
    )
    await beat(node, 2, want_fence=True)
    assert orders(node).leader == -1

    allowed = (("unclean.leader.election.enable", ConfigOperation.SET, "true"),)
    await controller.ask(IncrementalAlterConfigs((ConfigChange(ResourceType.TOPIC, "orders", allowed),)))
    await node.clock.pass_time(INTERVAL_MS)

    assert (orders(node).leader, orders(node).isr) == (1, (1,))


async def test_on_one_node_the_looks_find_nothing_and_write_nothing() -> None:
    node = Node()
    await node.start()
    await node.create_topics(NewTopic("orders"))
    before = node.image

    await node.clock.pass_time(10 * INTERVAL_MS)

    assert node.image is before
