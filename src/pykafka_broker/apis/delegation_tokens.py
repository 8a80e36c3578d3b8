"""The common parts of the four APIs of delegation tokens (KIP-48).

A token is a password, so a client may ask for one only if it has authenticated, and not with a token. A
broker checks the connection of its client before it forwards a request. A controller checks the connection of
the broker that has forwarded the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.context import ANONYMOUS

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

#: The time in an answer to a client that may not send the request.
NO_TIME = -1


def may_ask(ctx: AdministrationContext) -> bool:
    """Whether requests about tokens are allowed on this connection."""
    sasl = ctx.connection.sasl
    if sasl is None:
        return ctx.principal != ANONYMOUS
    return not sasl.by_token


def parts(principal: str) -> tuple[str, str]:
    """The type and the name of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name
