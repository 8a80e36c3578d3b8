"""The life of a broker, asked of a controller over files in memory."""

from __future__ import annotations

from pykafka_broker.broker.lifecycle import BrokerLifecycle
from pykafka_broker.cluster.events import DirectoryAssignment
from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.log.disk.directories import LogDirs
from tests.support.metadata import Node

LISTENERS = {"PLAINTEXT": RegisteredEndpoint("localhost", 9092)}
MOVED = {"PLAINTEXT": RegisteredEndpoint("localhost", 9095)}


class NoReplicas:
    """A broker without a partition."""

    def misplaced(self) -> list[DirectoryAssignment]:
        return []


async def started(node: Node, listeners: dict[str, RegisteredEndpoint]) -> BrokerLifecycle:
    """The life of a broker that has registered itself."""
    dirs = LogDirs(node.files, ["/data"])
    dirs.metadata.directory_id = node.directory_id
    lifecycle = BrokerLifecycle(node.controller, dirs, NoReplicas())
    await lifecycle.register(listeners, rack=None, previous_broker_epoch=-1)
    return lifecycle


async def test_a_registration_that_is_asked_for_again_is_of_the_same_incarnation() -> None:
    node = Node()
    await node.replica.start()
    broker = await started(node, LISTENERS)
    first = node.image.brokers[1]

    await broker.register(MOVED, rack=None, previous_broker_epoch=-1)

    assert first.incarnation_id == broker.incarnation_id
    assert broker.broker_epoch == first.epoch
    assert node.image.brokers[1] == first._replace(listeners=MOVED, record_offset=first.record_offset + 1)


async def test_another_start_is_another_incarnation_with_another_epoch() -> None:
    node = Node()
    await node.replica.start()
    before = await started(node, LISTENERS)

    after = await started(node, LISTENERS)

    assert after.incarnation_id != before.incarnation_id
    assert after.broker_epoch > before.broker_epoch
    assert node.image.brokers[1].incarnation_id == after.incarnation_id
