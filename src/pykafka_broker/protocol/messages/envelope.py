"""Envelope (API key 58): a broker forwards a client's request, with who sent it, to the controller.

v0 is the only version, flexible. The embedded request and response carry headers of their own.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import binary, i16, message


@message(api_key=58, versions="0", flexible="0+", listeners="controller")
class EnvelopeRequest:
    request_data: bytes = binary(secret=True)
    request_principal: bytes | None = binary(nullable=True)
    client_host_address: bytes = binary()


@message(api_key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    response_data: bytes | None = binary(nullable=True, default=None, secret=True)
    error_code: int = i16()
