"""RenewDelegationToken (API key 39): extend the life of a token.

v2 flexible. Its owner and its renewers may do so. As in Apache Kafka the time in the answer is -1 if the
client may not send the request, and 0 if the controller refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.delegation_tokens import NO_TIME, may_ask
from pykafka_broker.apis.forwarding import decided, pass_on
from pykafka_broker.controller.core.events import RenewToken
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, ControllerContext, RequestContext


def failed(_request: RenewDelegationTokenRequest, error: KafkaError) -> RenewDelegationTokenResponse:
    """The answer to a failed request."""
    return RenewDelegationTokenResponse(error_code=int(error.code), expiry_timestamp_ms=0)


@asks_controller
@handles(RenewDelegationTokenRequest, versions="1-2", needs=[], error_response=failed)
async def renew_delegation_token(request: RenewDelegationTokenRequest, ctx: RequestContext) -> Any:
    """The controller decides, unless the client may not send the request."""
    if not may_ask(ctx):
        return _not_allowed()
    return await decided(ctx, lambda: _renew(request, ctx), lambda: pass_on(request, ctx, failed))


@asks_controller
@handles(RenewDelegationTokenRequest, versions="1-2", needs=[], error_response=failed)
async def renew_delegation_token_on_controller(
    request: RenewDelegationTokenRequest, ctx: ControllerContext
) -> RenewDelegationTokenResponse:
    """Renew the token, unless the client may not send the request."""
    return await _renew(request, ctx) if may_ask(ctx) else _not_allowed()


async def _renew(
    request: RenewDelegationTokenRequest, ctx: AdministrationContext
) -> RenewDelegationTokenResponse:
    event = RenewToken(ctx.principal, bytes(request.hmac), request.renew_period_ms)
    expiry_timestamp_ms = await ctx.node.controller.ask(event, requester=ctx.requester)
    return RenewDelegationTokenResponse(
        error_code=int(ErrorCode.NONE), expiry_timestamp_ms=expiry_timestamp_ms
    )


def _not_allowed() -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED), expiry_timestamp_ms=NO_TIME
    )
