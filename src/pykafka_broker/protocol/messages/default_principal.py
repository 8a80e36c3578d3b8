"""DefaultPrincipalData: how a broker names a client's principal when it forwards the client's request in an
Envelope.

v0 is the only version, flexible; it stands behind its version (int16).
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import boolean, message, string


@message(versions="0", flexible="0+")
class DefaultPrincipalData:
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
