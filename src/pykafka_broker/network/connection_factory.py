"""The factory of a listener's connections: it makes one for each client that is let in.

`accepting.py` asks the listener's factory for a connection, then has the listener's transport drive its
protocol. `kafka_connections.py` is the factory of listeners that speak Kafka; a metrics page has another one.
Listeners, the sweep and the stop know connections only as `OpenConnection`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pykafka_broker.system.named_tuple import NamedTuple


class OpenConnection(Protocol):
    """A connection as listeners and the sweep see it; its `repr` names it in the log.

    It adds itself to `Shared.connections` when its transport opens. When it is lost it removes itself, calls
    the functions registered with `on_close`, and then `Accepted.on_lost`. Times are monotonic, and a
    sweep sets them.
    """

    listener_name: str

    @property
    def idle_since_ms(self) -> int:
        """When a sweep last saw that bytes had moved."""
        ...

    @property
    def stalled_since_ms(self) -> int | None:
        """When the peer stopped reading its answers; None while it reads."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers the peer has not read."""
        ...

    def check(self, now_ms: int) -> None:
        """Close the connection if its peer takes too long."""
        ...

    def drop_unread(self) -> None:
        """Close it because unread answers take too much memory."""
        ...

    def finish(self) -> None:
        """Start no further request, and close when the outstanding ones are answered."""
        ...

    def abort(self) -> None:
        """Close now; unsent answers are lost."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        ...


class Accepted(NamedTuple):
    """A client that was let in."""

    listener_name: str
    #: Address and port.
    peer: tuple[str, int]
    #: Called once when the connection is lost, so that it no longer counts; not if it never opened.
    on_lost: Callable[[], None]


class NewConnection(NamedTuple):
    """A connection whose transport has not opened yet: one object in both roles, or two."""

    #: The side that the event loop calls.
    protocol: asyncio.BaseProtocol
    #: The side that listeners and the sweep call.
    connection: OpenConnection


class ConnectionFactory(Protocol):
    """Makes the connections of one listener."""

    def __call__(self, accepted: Accepted) -> NewConnection:
        """The connection of a client."""
        ...
