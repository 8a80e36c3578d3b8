"""The console on a socket: uvicorn, without its own words, and with the addresses bound before it starts.

uvicorn's `limit_concurrency` counts requests that have come: a connection that says nothing would stay, and
hold a descriptor of the broker's process.
"""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pykafka_broker.console.app import console
from pykafka_broker.console.settings import Settings

#: How long pages that are being made may take when the console stops.
STOP_WITHIN_S = 1
#: The most connections at once; one more is closed. A browser has up to six to a host.
MAX_CONNECTIONS = 200
#: A connection whose first request has not come after this time is closed.
REQUEST_WITHIN_S = 10.0


class Connection(H11Protocol):
    """One connection of a browser."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        is_one_too_many = len(self.connections) >= MAX_CONNECTIONS
        super().connection_made(transport)
        if is_one_too_many:
            transport.abort()
        else:
            self.loop.call_later(REQUEST_WITHIN_S, self._close_without_request)

    def _close_without_request(self) -> None:
        if self.cycle is None:
            self.transport.abort()  # type: ignore[unreachable]  # uvicorn declares that there is always one


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; the port 0 picks a free one.

    Raises:
        OSError: the address is taken, or none of this machine.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        # A browser that knows the address may connect before the server runs.
        taken.listen()
    except OSError as error:
        taken.close()
        raise OSError(error.errno, f"The console cannot listen: {error.strerror}", f"{host}:{port}") from None
    return taken


def server(settings: Settings, certificate: str | None = None, key: str | None = None) -> uvicorn.Server:
    """A server of the console, over TLS if it has a certificate with its key (files in PEM)."""
    return uvicorn.Server(
        uvicorn.Config(
            console(settings),
            http=Connection,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
    )
