"""Connections of this node's coordinators to other brokers: one for each, shared by all callers, and kept.

A connection is opened for the first request, to the broker's address on the inter-broker listener in the
newest image. It is closed when idle, when a request gets no answer in time, and when the image says that the
broker is gone: fenced, restarted, or moved to another address. Then waiting callers get an error at once; a
hanging broker would hold them until their time-outs. A request without an answer may have been carried out.

No request is sent again here: the caller looks up the leader again, and asks it.

Brokers answer the requests of one connection in order, so requests that may wait long (markers, for acks=all)
have their own `KeptConnections`, as they have their own network client in Apache Kafka.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.cluster.image import BrokerRegistration, ClusterImage
from pykafka_broker.coordinator.ports import Metadata
from pykafka_broker.machine.clock import Clock, Timer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.replication.broker_connection import BrokerConnection, address_of
from pykafka_broker.system.named_tuple import NamedTuple

#: The most callers that may wait for one broker at a time.
MAX_CALLERS = 1_000

logger = logging.getLogger("org.apache.kafka.clients.NetworkClient")

#: Opens a connection: `connect(address, timeout_ms)`; raises OSError, ProtocolError or KafkaError.
Connect = Callable[[Address, int], Awaitable[BrokerConnection]]


class ConnectionSettings(NamedTuple):
    """`listener` is `inter.broker.listener.name`. The time-outs are `request.timeout.ms`,
    `socket.connection.setup.timeout.ms` and `connections.max.idle.ms`; with a negative `idle_ms` idle
    connections are never closed.
    """

    listener: str
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    idle_ms: int = 600_000


class KeptConnections:
    """Event loop only."""

    def __init__(
        self, metadata: Metadata, connect: Connect, clock: Clock, settings: ConnectionSettings
    ) -> None:
        self._metadata = metadata
        self._connect = connect
        self._clock = clock
        self._settings = settings
        self._kept: dict[int, _Kept] = {}
        #: Connections that are being closed.
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def is_reachable(self, broker_id: int) -> bool:
        """Whether this broker is alive and has a listener for brokers."""
        return address_of(self._metadata.image.brokers.get(broker_id), self._settings.listener) is not None

    async def ask(self, broker_id: int, request: object, *, lowest_version: int = 0) -> Any:
        """The response of a broker, in the newest version that both sides know.

        Raises:
            KafkaError: the request cannot be sent to this broker; UNSUPPORTED_VERSION, it knows no version of
                the request from `lowest_version` on.
            OSError: the broker is unreachable or gone, or has not answered in time.
            ProtocolError: the broker has sent malformed data.
        """
        give_up_ms = self._clock.monotonic_ms() + self._settings.request_timeout_ms
        kept = self._kept_to(broker_id)
        if kept.callers >= MAX_CALLERS:
            raise ConnectionError(f"Too many requests to broker {broker_id} wait.")
        kept.callers += 1
        try:
            connection = await asyncio.shield(kept.connection)
            version = connection.newest_version(request)
            if version < lowest_version:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION, f"Broker {broker_id} knows only version {version}."
                )
            left_ms = max(0, give_up_ms - self._clock.monotonic_ms())
            return await connection.send(request, version, timeout_ms=left_ms)
        except (OSError, ProtocolError) as error:
            self._give_up(kept, error)
            raise
        finally:
            kept.callers -= 1
            kept.last_used_ms = self._clock.monotonic_ms()

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Close the connections to brokers that are gone."""
        if new.brokers is old.brokers:
            return
        for kept in tuple(self._kept.values()):
            if kept.place != _place(new.brokers.get(kept.broker_id), self._settings.listener):
                self._give_up(kept, ConnectionError(f"Broker {kept.broker_id} is gone."))

    async def close(self) -> None:
        """Answer waiting callers with an error, and close all connections."""
        self._is_closed = True
        for kept in tuple(self._kept.values()):
            self._give_up(kept, ConnectionError("This node is stopping."))
        while self._closing:
            await asyncio.wait(tuple(self._closing))

    # -- connections -----------------------------------------------------------------------------------

    def _kept_to(self, broker_id: int) -> _Kept:
        if self._is_closed:
            raise ConnectionError("This node is stopping.")
        kept = self._kept.get(broker_id)
        if kept is not None and not kept.has_ended:
            return kept
        if kept is not None:
            self._give_up(kept, ConnectionError(f"Broker {broker_id} has closed the connection."))
        place = _place(self._metadata.image.brokers.get(broker_id), self._settings.listener)
        if place is None:
            raise ConnectionError(f"Broker {broker_id} is not reachable.")
        loop = asyncio.get_running_loop()
        kept = self._kept[broker_id] = _Kept(broker_id, place, loop.create_future())
        kept.opening = loop.create_task(self._open(kept))
        return kept

    async def _open(self, kept: _Kept) -> None:
        try:
            connection = await self._connect(kept.place.address, self._settings.connect_timeout_ms)
        except (OSError, ProtocolError) as error:
            kept.refuse(error)
        except KafkaError as error:
            kept.refuse(ConnectionError(f"Broker {kept.broker_id} refuses the connection: {error}"))
        except Exception as error:  # without an error callers would wait forever
            logger.exception("Failed to connect to broker %d", kept.broker_id)
            kept.refuse(ConnectionError(f"Broker {kept.broker_id} is not reachable: {error}"))
        else:
            kept.connection.set_result(connection)
            kept.last_used_ms = self._clock.monotonic_ms()
            self._watch(kept)

    def _watch(self, kept: _Kept) -> None:
        """Close the connection once it has been idle for `idle_ms`."""
        idle_ms = self._settings.idle_ms
        if idle_ms >= 0:
            kept.idle = self._clock.call_at(kept.last_used_ms + idle_ms, lambda: self._look(kept))

    def _look(self, kept: _Kept) -> None:
        now_ms = self._clock.monotonic_ms()
        if kept.callers:
            kept.last_used_ms = now_ms
        if now_ms - kept.last_used_ms >= self._settings.idle_ms:
            self._give_up(kept, ConnectionError(f"The connection to broker {kept.broker_id} was idle."))
        else:
            self._watch(kept)

    def _give_up(self, kept: _Kept, error: Exception) -> None:
        """Close this connection; its callers get `error`."""
        if self._kept.get(kept.broker_id) is kept:
            del self._kept[kept.broker_id]
        if kept.idle is not None:
            kept.idle.cancel()
        if not kept.connection.done():
            kept.opening.cancel()
            kept.refuse(error)
            closing = kept.opening
        elif kept.is_open:
            closing = asyncio.get_running_loop().create_task(kept.connection.result().close())
        else:
            return
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


class _Place(NamedTuple):
    """The address of one registration of a broker."""

    address: Address
    broker_epoch: int


class _Kept:
    """A connection that is open or being opened."""

    __slots__ = ("broker_id", "callers", "connection", "idle", "last_used_ms", "opening", "place")

    #: Opens the connection.
    opening: asyncio.Task[None]

    def __init__(self, broker_id: int, place: _Place, connection: asyncio.Future[BrokerConnection]) -> None:
        self.broker_id = broker_id
        self.place = place
        self.connection = connection
        self.callers = 0
        self.last_used_ms = 0
        self.idle: Timer | None = None

    def refuse(self, error: Exception) -> None:
        """The connection could not be made; callers get `error`."""
        self.connection.set_exception(error)
        self.connection.exception()  # there may be no caller left to take it

    @property
    def is_open(self) -> bool:
        """Whether the connection was opened; it may have ended since."""
        return self.connection.done() and self.connection.exception() is None

    @property
    def has_ended(self) -> bool:
        """Whether the connection could not be opened, or has been closed by either side."""
        return self.connection.done() and (not self.is_open or self.connection.result().is_closed)


def _place(broker: BrokerRegistration | None, listener: str) -> _Place | None:
    address = address_of(broker, listener)
    return None if broker is None or address is None else _Place(address, broker.epoch)
