"""A controller registers itself while the metadata does not show it, and the nearest controller is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pykafka_broker.cluster.events import ProducerIdBlock
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.controller.nearest_channel import NearestControllerChannel
from pykafka_broker.controller.registration import ControllerRegistrar
from pykafka_broker.metadata.controller_channel import LedHere
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid
from tests.support.metadata import Node

LISTENERS = {"CONTROLLER": RegisteredEndpoint("localhost", 9093)}


class Unwilling:
    """A channel whose first requests fail."""

    def __init__(self, node: Node, failures: int, error: Exception) -> None:
        self._node = node
        self._error = error
        self._failures = failures
        self.asked_ms: list[int] = []

    async def register_controller(
        self,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        features: Mapping[str, FeatureRange] = {},
    ) -> None:
        self.asked_ms.append(self._node.clock.monotonic_ms())
        if len(self.asked_ms) <= self._failures:
            raise self._error
        await self._node.controller.register_controller(incarnation_id, listeners)


def registrar(node: Node, channel: Any) -> ControllerRegistrar:
    return ControllerRegistrar(channel, node.publisher, node.clock, 1, LISTENERS)


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.REQUEST_TIMED_OUT), ValueError("odd")])
async def test_a_controller_asks_with_growing_pauses_until_it_is_registered_and_then_no_more(
    error: Exception,
) -> None:
    node = Node()
    await node.start()
    channel = Unwilling(node, 3, error)
    registration = registrar(node, channel)

    began_ms = node.clock.monotonic_ms()
    registration.start()
    await node.clock.pass_time(60_000)

    assert [at_ms - began_ms for at_ms in channel.asked_ms] == [0, 100, 300, 700]
    assert node.image.controllers[1].incarnation_id == registration.incarnation_id
    assert node.image.controllers[1].listeners == LISTENERS
    await registration.close()


async def test_a_controller_whose_registration_was_replaced_registers_again() -> None:
    node = Node()
    await node.start()
    registration = registrar(node, node.controller)
    registration.start()
    await node.clock.pass_time(1_000)

    await node.controller.register_controller(random_uuid(), LISTENERS)
    await node.clock.pass_time(1_000)

    assert node.image.controllers[1].incarnation_id == registration.incarnation_id
    await registration.close()


class Role:
    def __init__(self, *, is_active: bool) -> None:
        self.is_active = is_active


class Channel:
    """Answers with a block of ids of its own, or an error, and may change the role meanwhile."""

    def __init__(self, role: Role, first_id: int, error: Exception | None, is_active: bool) -> None:
        self._role = role
        self._block = ProducerIdBlock(first_id, 1_000)
        self._error = error
        self._is_active = is_active

    async def allocate_producer_ids(self, broker_epoch: int) -> ProducerIdBlock:
        self._role.is_active = self._is_active
        if self._error is not None:
            raise self._error
        return self._block


async def test_the_controller_of_this_node_is_asked_while_it_is_active_and_else_the_other() -> None:
    for is_active, first_id in ((True, 1), (False, 2)):
        role = Role(is_active=is_active)
        local, remote = (Channel(role, number, None, is_active) for number in (1, 2))
        nearest = NearestControllerChannel(role, local, remote)  # type: ignore[arg-type]  # one method of theirs
        assert await nearest.allocate_producer_ids(7) == ProducerIdBlock(first_id, 1_000)


async def test_a_request_follows_the_controller_to_the_other_side() -> None:
    role = Role(is_active=True)
    gone = Channel(role, 1, KafkaError(ErrorCode.NOT_CONTROLLER), is_active=False)
    nearest = NearestControllerChannel(role, gone, Channel(role, 2, None, is_active=False))  # type: ignore[arg-type]
    assert await nearest.allocate_producer_ids(7) == ProducerIdBlock(2, 1_000)

    role = Role(is_active=False)
    come = Channel(role, 2, LedHere(), is_active=True)
    nearest = NearestControllerChannel(role, Channel(role, 1, None, is_active=True), come)  # type: ignore[arg-type]
    assert await nearest.allocate_producer_ids(7) == ProducerIdBlock(1, 1_000)
