"""How bytes travel between a client's socket and its connection.

PLAINTEXT sends them as they are. TLS would be a second transport here: it holds the `ssl.SSLContext` of its
listener, made of the `ssl.*` keys, and passes it to `connect_accepted_socket`; what a client certificate says
goes to `authentication.py`.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol


class Transport(Protocol):
    """Of one security protocol."""

    async def open(self, connection: asyncio.BufferedProtocol, client: socket.socket) -> None:
        """Let `connection` serve an accepted socket.

        Raises:
            OSError: the peer has gone.
        """
        ...


class Plaintext:
    """Bytes as they are."""

    async def open(self, connection: asyncio.BufferedProtocol, client: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, client)
