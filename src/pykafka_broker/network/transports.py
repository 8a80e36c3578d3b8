"""The transports of bytes between a client's socket and its connection.

PLAINTEXT sends them as they are. TLS would be a second transport here: it holds the `ssl.SSLContext` of its
listener, made of the `ssl.*` keys, and passes it to `connect_accepted_socket`; a client's certificate goes
to `authentication.py` as a `TransportPeer`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Protocol

from pykafka_broker.system.named_tuple import NamedTuple


class TransportPeer(NamedTuple):
    """The facts that an open transport has about its peer."""

    #: The client's TLS certificate as `ssl.SSLSocket.getpeercert` shows it; None if it sent none.
    certificate: Mapping[str, object] | None


def peer_of(transport: asyncio.BaseTransport) -> TransportPeer:
    """The facts that `transport`, which is open, has about its peer."""
    return TransportPeer(transport.get_extra_info("peercert"))


class Transport(Protocol):
    """The transport of one security protocol."""

    async def open(self, protocol: asyncio.BaseProtocol, client: socket.socket) -> None:
        """Let `protocol` serve an accepted socket; a handshake is over before `connection_made` is called.

        Raises:
            OSError: the peer has gone.
        """
        ...


class Plaintext:
    """Bytes as they are."""

    async def open(self, protocol: asyncio.BaseProtocol, client: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, client)
