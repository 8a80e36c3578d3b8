"""ExpireDelegationToken (API key 40): make a token expire, at once or after some time.

v2 flexible. Its owner and its renewers may do so. As in Apache Kafka the time in the answer is -1 if the
client may not send the request, and 0 if the controller refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.delegation_tokens import NO_TIME, may_ask
from pykafka_broker.apis.forwarding import decided, pass_on
from pykafka_broker.controller.core.events import ExpireToken
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, ControllerContext, RequestContext


def failed(_request: ExpireDelegationTokenRequest, error: KafkaError) -> ExpireDelegationTokenResponse:
    """The answer to a failed request."""
    return ExpireDelegationTokenResponse(error_code=int(error.code), expiry_timestamp_ms=0)


@asks_controller
@handles(ExpireDelegationTokenRequest, versions="1-2", needs=[], error_response=failed)
async def expire_delegation_token(request: ExpireDelegationTokenRequest, ctx: RequestContext) -> Any:
    """The controller decides, unless the client may not send the request."""
    if not may_ask(ctx):
        return _not_allowed()
    return await decided(ctx, lambda: _expire(request, ctx), lambda: pass_on(request, ctx, failed))


@asks_controller
@handles(ExpireDelegationTokenRequest, versions="1-2", needs=[], error_response=failed)
async def expire_delegation_token_on_controller(
    request: ExpireDelegationTokenRequest, ctx: ControllerContext
) -> ExpireDelegationTokenResponse:
    """Make the token expire, unless the client may not send the request."""
    return await _expire(request, ctx) if may_ask(ctx) else _not_allowed()


async def _expire(
    request: ExpireDelegationTokenRequest, ctx: AdministrationContext
) -> ExpireDelegationTokenResponse:
    event = ExpireToken(ctx.principal, bytes(request.hmac), request.expiry_time_period_ms)
    expiry_timestamp_ms = await ctx.node.controller.ask(event, requester=ctx.requester)
    return ExpireDelegationTokenResponse(
        error_code=int(ErrorCode.NONE), expiry_timestamp_ms=expiry_timestamp_ms
    )


def _not_allowed() -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED), expiry_timestamp_ms=NO_TIME
    )
