"""DefaultPrincipalData (API key None)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import boolean, message, string


@message(versions="0", flexible="0+")
class DefaultPrincipalData:
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
