"""SaslHandshake (API key 17): the mechanism of a SASL exchange.

After v0 the tokens come as bare frames, after v1 in SaslAuthenticate. A peer that needs no exchange, because
its listener has no SASL or its session has no lifetime, gets ILLEGAL_SASL_STATE and no mechanisms.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


@handles(
    SaslHandshakeRequest,
    versions="0-1",
    needs=[],
    error_response=lambda request, error: SaslHandshakeResponse(error_code=int(error.code), mechanisms=[]),
)
def sasl_handshake(
    request: SaslHandshakeRequest, ctx: AdministrationContext
) -> SaslHandshakeResponse | Awaitable[SaslHandshakeResponse]:
    """Begin an exchange; the answer lists the mechanisms."""
    sasl = ctx.connection.sasl
    told = None if sasl is None else sasl.handshake(ctx.version, request.mechanism)
    if sasl is None or told is None:
        return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE), mechanisms=[])
    answer = SaslHandshakeResponse(error_code=int(told.error_code), mechanisms=told.mechanisms)
    return sasl.last_answer(answer) if told.closes else answer
