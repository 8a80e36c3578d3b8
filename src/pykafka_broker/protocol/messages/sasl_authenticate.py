"""SaslAuthenticate (API key 36): one round of the SASL exchange that SaslHandshake v1 began.

v1 the session's lifetime, v2 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import binary, i16, i64, message, string


@message(api_key=36, versions="0-2", flexible="2+", listeners="broker controller")
class SaslAuthenticateRequest:
    auth_bytes: bytes = binary(secret=True)


@message(api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    auth_bytes: bytes = binary(secret=True)
    session_lifetime_ms: int = i64("1+", default=0)
