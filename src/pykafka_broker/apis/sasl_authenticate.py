"""SaslAuthenticate (API key 36): a token of the SASL exchange that SaslHandshake v1 began.

v1 the lifetime of the session, v2 flexible. Outside of an exchange the answer is ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


@handles(
    SaslAuthenticateRequest,
    versions="0-2",
    needs=[],
    error_response=lambda request, error: SaslAuthenticateResponse(
        error_code=int(error.code), error_message=error.message, auth_bytes=b""
    ),
)
def sasl_authenticate(
    request: SaslAuthenticateRequest, ctx: AdministrationContext
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    """Process a token; the answer has this side's next token, or refuses the peer."""
    sasl = ctx.connection.sasl
    told = None if sasl is None else sasl.token(bytes(request.auth_bytes))
    if sasl is None or told is None:
        return SaslAuthenticateResponse(
            error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    answer = SaslAuthenticateResponse(
        error_code=int(told.error_code),
        error_message=told.error_message,
        auth_bytes=told.token,
        session_lifetime_ms=told.lifetime_ms,
    )
    return sasl.last_answer(answer) if told.closes else answer
