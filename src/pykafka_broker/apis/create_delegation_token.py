"""CreateDelegationToken (API key 38): issue a token with which a client logs in as the token's owner.

v2 flexible, v3 on behalf of another owner (KIP-373). As in Apache Kafka the times of an answer are -1 if the
client may not send the request, and 0 if the controller refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.context import ANONYMOUS
from pykafka_broker.apis.delegation_tokens import NO_TIME, may_ask, parts
from pykafka_broker.apis.denials import denied
from pykafka_broker.apis.forwarding import decided, pass_on
from pykafka_broker.apis.needs import on_users
from pykafka_broker.apis.ports.authorizer import AclOperation, AclResourceType
from pykafka_broker.controller.core.delegation_tokens import USER_TYPE
from pykafka_broker.controller.core.events import CreateToken
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, ControllerContext, RequestContext

NEEDS = [on_users(AclOperation.CREATE_TOKENS).asked_by_handler()]


def failed(_request: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    """The answer to a request that failed for another reason."""
    return _without_token(error.code, ANONYMOUS, ANONYMOUS, NO_TIME)


@asks_controller
@handles(CreateDelegationTokenRequest, versions="1-3", needs=NEEDS, error_response=failed)
async def create_delegation_token(request: CreateDelegationTokenRequest, ctx: RequestContext) -> Any:
    """The controller decides, unless the client may not send the request or a renewer is no user."""
    refusal = _refusal(request, ctx)
    if not refusal and any(each.principal_type != USER_TYPE for each in request.renewers):
        refusal = ErrorCode.INVALID_PRINCIPAL_TYPE
    if refusal:
        return _without_token(refusal, _owner(request, ctx), ctx.principal, NO_TIME)
    return await decided(ctx, lambda: _create(request, ctx), lambda: pass_on(request, ctx, failed))


@asks_controller
@handles(CreateDelegationTokenRequest, versions="1-3", needs=NEEDS, error_response=failed)
async def create_delegation_token_on_controller(
    request: CreateDelegationTokenRequest, ctx: ControllerContext
) -> CreateDelegationTokenResponse:
    """Create the token, unless the client may not send the request."""
    if refusal := _refusal(request, ctx):
        return _without_token(refusal, _owner(request, ctx), ctx.principal, NO_TIME)
    return await _create(request, ctx)


def _owner(request: CreateDelegationTokenRequest, ctx: AdministrationContext) -> str:
    if not request.owner_principal_name:
        return ctx.principal
    if request.owner_principal_type is None:
        # Apache Kafka fails here without an error of its own.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def _refusal(request: CreateDelegationTokenRequest, ctx: AdministrationContext) -> ErrorCode:
    owner = _owner(request, ctx)
    if not may_ask(ctx):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    # Every user may create tokens for itself.
    if owner != ctx.principal and denied(ctx, AclOperation.CREATE_TOKENS, AclResourceType.USER, (owner,)):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    return ErrorCode.NONE


async def _create(
    request: CreateDelegationTokenRequest, ctx: AdministrationContext
) -> CreateDelegationTokenResponse:
    owner = _owner(request, ctx)
    renewers = tuple((each.principal_type, each.principal_name) for each in request.renewers)
    event = CreateToken(owner, ctx.principal, renewers, request.max_lifetime_ms)
    try:
        created = await ctx.node.controller.ask(event, requester=ctx.requester)
    except KafkaError as error:
        if error.code == ErrorCode.NOT_CONTROLLER:
            return failed(request, error)
        return _without_token(error.code, owner, ctx.principal, 0)
    answer = _without_token(ErrorCode.NONE, owner, ctx.principal, 0)
    answer.issue_timestamp_ms = created.issue_timestamp_ms
    answer.expiry_timestamp_ms = created.expiry_timestamp_ms
    answer.max_timestamp_ms = created.max_timestamp_ms
    answer.token_id = created.token_id
    answer.hmac = created.hmac
    return answer


def _without_token(error: ErrorCode, owner: str, requester: str, at_ms: int) -> CreateDelegationTokenResponse:
    owner_type, owner_name = parts(owner)
    requester_type, requester_name = parts(requester)
    return CreateDelegationTokenResponse(
        error_code=int(error),
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=at_ms,
        expiry_timestamp_ms=at_ms,
        max_timestamp_ms=at_ms,
        token_id="",
        hmac=b"",
    )
