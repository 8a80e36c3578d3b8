"""Authentication: the principal of a connection's peer, and the requests it may send before that is known.

In order: the transport opens, and with TLS its handshake is over; the connection asks the authentication of
its listener to begin, and passes on the transport's facts about the peer, such as a client certificate; the
`Identity` that comes back is set on the connection before it reads a request. An identity is a principal,
which every request carries, and the routes the peer may use. The connection keeps both in attributes of its
own, so authentication adds no cost per request.

Without SASL the identity stays as it began: `Anonymous` lets the peer use all routes of its listener.

With SASL a connection would begin as an anonymous peer with a `Dispatch` of three APIs: ApiVersions,
SaslHandshake and SaslAuthenticate. `begin` would start an exchange, which ends when the connection closes
(`on_close`), and hand it to the connection in the `Identity`, as a further field. `ClientConnection`
(`apis/ports/connection.py`) would show it to the handlers of SaslHandshake and SaslAuthenticate, as a port
with these two steps. When the exchange succeeds, it calls `identify` with the user and all routes, and again
when the user authenticates again (KIP-368).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.network.transports import TransportPeer
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.network.dispatch import Dispatch

ANONYMOUS = "User:ANONYMOUS"


class Identity(NamedTuple):
    """The principal of a connection, and the routes it may use."""

    principal: str
    dispatch: Dispatch[Any]


class Identifiable(Protocol):
    """A connection as its authentication sees it."""

    def identify(self, identity: Identity) -> None:
        """Go by `identity` from the next request on."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        ...


class Authentication(Protocol):
    """The authentication of one security protocol."""

    def begin(self, connection: Identifiable, dispatch: Dispatch[Any], peer: TransportPeer) -> Identity:
        """The identity that a connection begins with; its transport has just opened.

        `dispatch` has the routes that its listener serves to users.
        """
        ...


class Anonymous:
    """No authentication: every peer is the same user."""

    def begin(self, connection: Identifiable, dispatch: Dispatch[Any], peer: TransportPeer) -> Identity:
        return Identity(ANONYMOUS, dispatch)
