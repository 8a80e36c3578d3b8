"""What the four APIs of delegation tokens have in common (KIP-48).

A token is a password, so it is asked for only where nobody can listen in on a name that anybody may give
himself: not on a plain connection, and not by who has come with a token himself. The broker looks at the
connection of its client before it passes a request on. A controller looks at the connection on which the
request came, which is that of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.context import ANONYMOUS

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

#: The time in an answer to who may not ask.
NO_TIME = -1


def may_ask(ctx: AdministrationContext) -> bool:
    """Whether requests about tokens are allowed on this connection."""
    sasl = ctx.connection.sasl
    if sasl is None:
        return ctx.principal != ANONYMOUS
    return not sasl.by_token


def parts(principal: str) -> tuple[str, str]:
    """The type and the name of a principal, as answers tell them."""
    kind, _, name = principal.partition(":")
    return kind, name
