"""Who the peer of a connection is, and what it may ask before that is known.

A connection is made with an `Identity`: a principal, which every request carries, and the routes it may use.
Without SASL the peer is anonymous and may use all routes of its listener, so authentication adds no cost per
request.

With SASL a new connection would begin as an anonymous peer with a `Dispatch` of three APIs: ApiVersions,
SaslHandshake and SaslAuthenticate, whose handlers advance the exchange of their connection. When the exchange
succeeds, the connection goes on with the user's `Identity` and all routes; the user may authenticate again
later (KIP-368).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pykafka_broker.network.dispatch import Dispatch

ANONYMOUS = "User:ANONYMOUS"


class Identity(NamedTuple):
    """What a connection goes by."""

    principal: str
    dispatch: Dispatch


class Authentication(Protocol):
    """Of one security protocol."""

    def begin(self, dispatch: Dispatch) -> Identity:
        """How a new connection begins, on a listener that serves `dispatch` to users."""
        ...


class Anonymous:
    """No authentication: every peer is the same user."""

    def begin(self, dispatch: Dispatch) -> Identity:
        return Identity(ANONYMOUS, dispatch)
