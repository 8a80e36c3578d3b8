"""A listener that does not speak Kafka: a page of one line, under the same limits as all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.network.connection_factory import Accepted, NewConnection
from pykafka_broker.network.endpoint import ListenerEndpoint, ListenerLimits
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.listening import ListenerService
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import Plaintext
from tests.network.clients import connected

PAGE = ListenerEndpoint("METRICS", "127.0.0.1", 0, serves="metrics")


class PageConnection(asyncio.Protocol):
    """Answers whatever comes in with how many connections are open, and stays open."""

    def __init__(self, shared: Shared, accepted: Accepted) -> None:
        self.listener_name = accepted.listener_name
        self.idle_since_ms = 0
        self.stalled_since_ms: int | None = None
        self.unsent_bytes = 0
        self._shared = shared
        self._accepted = accepted
        self._on_close: list[Callable[[], None]] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._shared.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._transport.write(f"open {len(self._shared.connections)}\n".encode())

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.connections.discard(self)
        for callback in self._on_close:
            callback()
        self._accepted.on_lost()

    def check(self, now_ms: int) -> None:
        pass

    def drop_unread(self) -> None:
        self.abort()

    def finish(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def on_close(self, callback: Callable[[], None]) -> None:
        self._on_close.append(callback)


@asynccontextmanager
async def page(limits: ListenerLimits | None = None) -> AsyncIterator[Listeners]:
    shared = Shared(SystemClock())

    def new_connection(accepted: Accepted) -> NewConnection:
        connection = PageConnection(shared, accepted)
        return NewConnection(connection, connection)

    listeners = Listeners(shared, limits)
    listeners.add(PAGE, ListenerService(Plaintext(), new_connection))
    listeners.start(PAGE.serves)
    try:
        yield listeners
    finally:
        await listeners.stop(grace_ms=1_000)


async def test_a_listener_serves_what_the_connections_of_its_factory_serve() -> None:
    async with page() as listeners, connected(listeners, name="METRICS") as [browser]:
        await browser.send(b"GET /metrics\r\n")

        assert await browser.receive() == b"open 1\n"


async def test_limits_count_its_connections_and_forget_those_that_are_lost() -> None:
    async with page(ListenerLimits(max_connections_per_ip=1)) as listeners:
        async with connected(listeners, name="METRICS") as [first]:
            await first.send(b"?")
            assert await first.receive() == b"open 1\n"
            async with connected(listeners, name="METRICS") as [second]:
                assert await second.receive() == b""
            [connection] = listeners.shared.connections
            lost = asyncio.Event()
            connection.on_close(lost.set)
        await lost.wait()
        async with connected(listeners, name="METRICS") as [third]:
            await third.send(b"?")
            assert await third.receive() == b"open 1\n"


async def test_a_stop_ends_its_connections() -> None:
    async with page() as listeners, connected(listeners, name="METRICS") as [browser]:
        await browser.send(b"?")
        await browser.receive()

        await listeners.stop(grace_ms=1_000)

        assert await browser.receive() == b""
        assert not listeners.shared.connections
