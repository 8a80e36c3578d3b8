"""The identity of a connection: its peer's principal, and the requests that it may send.

When the transport is open (with TLS, after the handshake), the connection calls `begin` of its listener's
authentication with the transport's facts about the peer, such as a client certificate. The returned
`Identity` is set on the connection before it reads a request. An identity is a principal, which every
request carries, and the routes the peer may use. The connection keeps both in attributes of its own, so
authentication adds no cost per request.

Without SASL the identity stays as it began: of `Anonymous`, or of a certificate
(`certificate_authentication.py`), with all routes of the listener. With SASL (`sasl_authentication.py`) the
connection is identified anew at each stage of an exchange.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.apis.context import ANONYMOUS as ANONYMOUS
from pykafka_broker.network.connection_lines import Logged
from pykafka_broker.network.faults import Faulty
from pykafka_broker.network.transports import TransportPeer
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.sasl import SaslConversation
    from pykafka_broker.network.dispatch import Dispatch


class Identity(NamedTuple):
    """The principal of a connection, and the routes it may use."""

    principal: str
    dispatch: Dispatch[Any]
    #: The exchange that this identity comes from, for the handlers of SASL.
    sasl: SaslConversation | None = None
    #: Answers the next frame, which is a bare SASL token; None sends no answer.
    take_token: Callable[[bytes], bytes | None] | None = None
    #: The most bytes of a request; None leaves the listener's limit.
    request_max_bytes: int | None = None


class Identifiable(Faulty, Logged, Protocol):
    """A connection as its authentication sees it; its `repr` names it in the log."""

    def identify(self, identity: Identity) -> None:
        """Use `identity` from the next request on."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        ...

    def close_when_answered(self) -> None:
        """Start no further request, and close once those that have started are answered."""
        ...

    def close_after(self, duration_ms: int) -> None:
        """Start no further request, and close after `duration_ms`."""
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
