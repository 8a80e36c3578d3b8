"""A connection to another broker, and the address to which it is made."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.cluster.image import BrokerRegistration


class BrokerConnection(Protocol):
    """A connection to one broker."""

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended."""
        ...

    def newest_version(self, request: object) -> int:
        """The newest version of the request that both sides know.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, there is none.
        """
        ...

    def send(self, request: object, version: int, *, timeout_ms: int) -> Awaitable[Any]:
        """Send a request and return its response.

        Raises:
            KafkaError: the request cannot be sent to this broker.
            TimeoutError: no response has come in time; the connection stays open.
            OSError: the connection has ended.
            ProtocolError: the broker has sent malformed data; the connection has ended.
        """
        ...

    async def close(self) -> None:
        """Close the connection; waiting callers get a ConnectionError."""
        ...


def address_of(broker: BrokerRegistration | None, listener: str) -> Address | None:
    """The address of a broker on a listener; None if it is fenced, or has no such listener."""
    if broker is None or broker.fenced or (endpoint := broker.listeners.get(listener)) is None:
        return None
    return Address(endpoint.host, endpoint.port)
