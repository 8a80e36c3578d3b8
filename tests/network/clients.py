"""Listeners on real sockets, and clients of theirs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import ListenerEndpoint, ListenerLimits
from pykafka_broker.network.identity import Anonymous
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.listening import ListenerService
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import Plaintext
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.testing.home import PATIENCE_SECONDS
from tests.support.serving import API_VERSIONS, Peer, apis

LOCAL = ListenerEndpoint("PLAINTEXT", "127.0.0.1", 0)


def kafka(shared: Shared, dispatch: Dispatch[Any], node: Any = None) -> ListenerService:
    """What a listener without security serves."""
    return ListenerService(Plaintext(), KafkaConnections(shared, dispatch, Anonymous(), lambda: node))


@asynccontextmanager
async def listening(
    *endpoints: ListenerEndpoint,
    limits: ListenerLimits | None = None,
    connection_limits: ConnectionLimits | None = None,
    node: Any = None,
    open_file_limit: int | None = None,
    clock: Clock | None = None,
    reserve: DescriptorReserve | None = None,
    **handlers: Callable[[Any, Any], Any],
) -> AsyncIterator[Listeners]:
    shared = Shared(clock or SystemClock(), connection_limits)
    listeners = Listeners(shared, limits, open_file_limit, reserve)
    for endpoint in endpoints or (LOCAL,):
        listeners.add(endpoint, kafka(shared, Dispatch(apis(**handlers)), node))
    listeners.start(BROKER_LISTENER)
    try:
        yield listeners
    finally:
        await listeners.stop(grace_ms=1_000)


class Client:
    """A socket, and what is asked over it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.peer = Peer()

    @classmethod
    async def connect(cls, address: tuple[str, int]) -> Client:
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def receive(self, size: int = 65536) -> bytes:
        """The next bytes; b"" if the broker closed or reset the connection."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.get_running_loop().sock_recv(self.sock, size)
        except ConnectionResetError:
            return b""

    async def ask(self, message: Any) -> list[tuple[int, Any]]:
        await self.send(self.peer.request(message))
        return self.peer.answers(await self.receive())

    def close(self) -> None:
        self.sock.close()


@asynccontextmanager
async def connected(
    listeners: Listeners, count: int = 1, name: str = "PLAINTEXT"
) -> AsyncIterator[list[Client]]:
    host, port = listeners.listeners[name].address
    clients = [await Client.connect((host or "127.0.0.1", port)) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


async def served(client: Client) -> bool:
    return [correlation_id for correlation_id, _ in await client.ask(API_VERSIONS)] != []
