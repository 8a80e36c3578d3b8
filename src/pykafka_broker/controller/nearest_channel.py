"""The active controller, in this process or elsewhere: the `ControllerChannel` of a node that may lead.

Each request is decided by itself: while this node's controller is active it is asked without a network, else
the one of another node is. A request that finds the controller gone, or here by now, goes on with the other
way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from pykafka_broker.cluster.events import (
    CreateTopicResult,
    DirectoryAssignment,
    HeartbeatResult,
    IsrChange,
    IsrChangeResult,
    NewTopic,
    ProducerIdBlock,
)
from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.metadata.controller_channel import BrokerStatus, ControllerChannel, LedHere
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

Result = TypeVar("Result")


class Role(Protocol):
    """The controller of this node."""

    @property
    def is_active(self) -> bool:
        """Whether it decides now."""
        ...


class NearestControllerChannel:
    """`metadata/controller_channel.py` explains each request."""

    def __init__(self, role: Role, local: ControllerChannel, remote: ControllerChannel) -> None:
        self._role = role
        self._local = local
        self._remote = remote

    async def _ask(self, request: Callable[[ControllerChannel], Awaitable[Result]]) -> Result:
        while True:
            if self._role.is_active:
                try:
                    return await request(self._local)
                except KafkaError as error:
                    if error.code is not ErrorCode.NOT_CONTROLLER or self._role.is_active:
                        raise
            try:
                return await request(self._remote)
            except LedHere:
                continue

    async def register_broker(
        self,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        directories: Iterable[bytes],
        rack: str | None = None,
        previous_broker_epoch: int = -1,
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> int:
        log_dirs = tuple(directories)
        return await self._ask(
            lambda channel: channel.register_broker(
                incarnation_id=incarnation_id,
                listeners=listeners,
                directories=log_dirs,
                rack=rack,
                previous_broker_epoch=previous_broker_epoch,
                features=features,
            )
        )

    async def heartbeat(self, status: BrokerStatus) -> HeartbeatResult:
        return await self._ask(lambda channel: channel.heartbeat(status))

    async def assign_replicas_to_dirs(
        self, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> tuple[ErrorCode, ...]:
        return await self._ask(lambda channel: channel.assign_replicas_to_dirs(broker_epoch, assignments))

    async def alter_partition(
        self, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> tuple[IsrChangeResult | None, ...]:
        return await self._ask(lambda channel: channel.alter_partition(broker_epoch, changes))

    async def allocate_producer_ids(self, broker_epoch: int) -> ProducerIdBlock:
        return await self._ask(lambda channel: channel.allocate_producer_ids(broker_epoch))

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        asked = tuple(topics)

        async def create(channel: ControllerChannel) -> tuple[CreateTopicResult, ...]:
            results = await channel.create_topics(asked, timeout_ms=timeout_ms, validate_only=validate_only)
            if results and all(result.error is ErrorCode.NOT_CONTROLLER for result in results):
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            return results

        return await self._ask(create)

    async def register_controller(
        self,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> None:
        await self._ask(lambda channel: channel.register_controller(incarnation_id, listeners, features))
