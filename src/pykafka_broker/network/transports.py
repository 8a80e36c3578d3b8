"""The transports of bytes between a client's socket and its connection.

PLAINTEXT sends them as they are. With TLS the event loop encrypts them: a connection opens when the handshake
is over, and a client's certificate goes to the authentication (`identity.py`) as a `TransportPeer`. Either
way a transport gets answers as pieces of memory (`sending.py`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ssl import SSLContext

#: A connection whose handshake, of two round trips, takes longer is closed.
HANDSHAKE_TIMEOUT_S = 10.0
#: How long a peer has to confirm that a connection is closed.
SHUTDOWN_TIMEOUT_S = 3.0


class HandshakeFailed(OSError):
    """The handshake with a peer failed; the message says why."""


class TransportPeer(NamedTuple):
    """The facts that an open transport knows about its peer."""

    #: The client's TLS certificate (DER), which has been verified; None if it sent none.
    certificate: bytes | None


def peer_of(transport: asyncio.BaseTransport) -> TransportPeer:
    """The facts that `transport`, which is open, knows about its peer."""
    tls = transport.get_extra_info("ssl_object")
    return TransportPeer(None if tls is None else tls.getpeercert(binary_form=True))


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


class Tls:
    """Bytes encrypted with TLS; `context` returns the context of the next connection."""

    def __init__(self, context: Callable[[], SSLContext], not_after_s: Callable[[], int | None]) -> None:
        self._context = context
        #: When the first of its certificates ends, in seconds since 1970; None if that is unknown.
        self.not_after_s = not_after_s

    async def open(self, protocol: asyncio.BaseProtocol, client: socket.socket) -> None:
        from pykafka_broker.tls.alerts import alert_of

        context = self._context()
        # The loop has closed `client` when it reports a failed handshake; the alert goes out on the copy.
        with client.dup() as spare:
            try:
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: protocol,
                    client,
                    ssl=context,
                    ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
                    ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
                )
            except OSError as error:
                with suppress(OSError):
                    spare.send(alert_of(error))
                reason = getattr(error, "reason", None) or str(error) or "the peer closed the connection"
                raise HandshakeFailed(reason) from error
