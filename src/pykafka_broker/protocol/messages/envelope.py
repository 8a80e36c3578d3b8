"""Envelope (API key 58)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import binary, i16, message


@message(api_key=58, versions="0", flexible="0+")
class EnvelopeRequest:
    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable=True)
    client_host_address: bytes = binary()


@message(api_key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    response_data: bytes | None = binary(nullable=True, default=None)
    error_code: int = i16()
