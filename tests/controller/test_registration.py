"""A controller registers itself while the metadata does not show it, and the nearest controller is asked."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.controller.channel import LedHere
from pykafka_broker.controller.core.events import (
    AllocateProducerIds,
    Event,
    ProducerIdBlock,
    RegisterController,
)
from pykafka_broker.controller.nearest_channel import NearestControllerChannel
from pykafka_broker.controller.registration import ControllerRegistrar
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

    async def ask(self, event: RegisterController) -> None:
        self.asked_ms.append(self._node.clock.monotonic_ms())
        if len(self.asked_ms) <= self._failures:
            raise self._error
        await self._node.role.ask(event)


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
    registration = registrar(node, node.role)
    registration.start()
    await node.clock.pass_time(1_000)

    await node.role.ask(RegisterController(1, random_uuid(), LISTENERS, NODE_FEATURES))
    await node.clock.pass_time(1_000)

    assert node.image.controllers[1].incarnation_id == registration.incarnation_id
    await registration.close()


class Role:
    """A controller that answers with a block of ids of its own; or with an error, and ends."""

    def __init__(self, *, is_active: bool, ends: bool = False) -> None:
        self.is_active = is_active
        self._ends = ends

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        if self._ends:
            self.is_active = False
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return ProducerIdBlock(1, 1_000)


class Remote:
    """Another controller, with another block; or the role begins, and is to be asked."""

    def __init__(self, begins: Role | None = None) -> None:
        self._begins = begins

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        if self._begins is not None:
            self._begins.is_active = True
            raise LedHere
        return ProducerIdBlock(2, 1_000)


ASKED = AllocateProducerIds(1, 7)


async def test_the_controller_of_this_node_is_asked_while_it_is_active_and_else_the_other() -> None:
    for is_active, first_id in ((True, 1), (False, 2)):
        nearest = NearestControllerChannel(Role(is_active=is_active), Remote())
        assert await nearest.ask(ASKED) == ProducerIdBlock(first_id, 1_000)


async def test_a_request_follows_the_controller_to_the_other_side() -> None:
    nearest = NearestControllerChannel(Role(is_active=True, ends=True), Remote())
    assert await nearest.ask(ASKED) == ProducerIdBlock(2, 1_000)

    role = Role(is_active=False)
    nearest = NearestControllerChannel(role, Remote(begins=role))
    assert await nearest.ask(ASKED) == ProducerIdBlock(1, 1_000)
