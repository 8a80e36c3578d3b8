"""The active controller, in this process or on another node: the `ControllerChannel` of a node that may lead.

Each request goes to this node's controller if it is active, otherwise over the network to that of another
node. If the active controller changes during a request, the request is sent the other way.
"""

from __future__ import annotations

from typing import Any, Protocol

from pykafka_broker.controller.channel import ControllerChannel, LedHere
from pykafka_broker.controller.core.events import Event
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class Role(ControllerChannel, Protocol):
    """The controller of this node."""

    @property
    def is_active(self) -> bool:
        """Whether it decides now."""
        ...


class NearestControllerChannel:
    """Implements `ControllerChannel`."""

    def __init__(self, role: Role, remote: ControllerChannel) -> None:
        self._role = role
        self._remote = remote

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        """The result of an event."""
        while True:
            if self._role.is_active:
                try:
                    return await self._role.ask(event, timeout_ms)
                except KafkaError as error:
                    if error.code is not ErrorCode.NOT_CONTROLLER or self._role.is_active:
                        raise
            try:
                return await self._remote.ask(event, timeout_ms)
            except LedHere:
                continue
