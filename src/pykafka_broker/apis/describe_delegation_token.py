"""DescribeDelegationToken (API key 41): the delegation tokens that the client may see, with their HMACs.

v2 flexible, v3 the requester of a token. A token is visible to its owner, its requester and its renewers, and
to users with DESCRIBE on the token or DESCRIBE_TOKENS on its owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.delegation_tokens import may_ask, parts
from pykafka_broker.apis.denials import denied
from pykafka_broker.apis.needs import on_delegation_tokens, on_users
from pykafka_broker.apis.ports.authorizer import AclOperation, AclResourceType
from pykafka_broker.controller.core.delegation_tokens import concerns, tokens_of
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.records.metadata import DelegationTokenRecord
from pykafka_broker.sasl.delegation_tokens import token_hmac

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: DescribeDelegationTokenRequest, error: KafkaError) -> DescribeDelegationTokenResponse:
    """The answer without tokens to a failed request."""
    return DescribeDelegationTokenResponse(error_code=int(error.code), tokens=[])


@handles(
    DescribeDelegationTokenRequest,
    versions="1-3",
    needs=[
        on_delegation_tokens(AclOperation.DESCRIBE).asked_by_handler()
        | on_users(AclOperation.DESCRIBE_TOKENS).asked_by_handler()
    ],
    error_response=failed,
)
def describe_delegation_token(
    request: DescribeDelegationTokenRequest, ctx: RequestContext
) -> DescribeDelegationTokenResponse:
    """Answers from the metadata of this node: the tokens of the named owners, or of all."""
    if not may_ask(ctx):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secret_key: str | None = ctx.node.configs.current.values["delegation.token.secret.key"]
    if not secret_key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = request.owners
    named = None if owners is None else [f"{each.principal_type}:{each.principal_name}" for each in owners]
    tokens = list(tokens_of(ctx.node.metadata.image, named))
    return DescribeDelegationTokenResponse(
        error_code=int(ErrorCode.NONE),
        tokens=[_described(token, secret_key.encode()) for token in _visible(tokens, ctx)],
    )


def _visible(tokens: list[DelegationTokenRecord], ctx: RequestContext) -> list[DelegationTokenRecord]:
    others = [token for token in tokens if not concerns(token, ctx.principal)]
    denied_ids = denied(
        ctx, AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, [token.token_id for token in others]
    )
    owners = [token.owner for token in others if token.token_id in denied_ids]
    denied_owners = denied(ctx, AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, owners)
    hidden = {
        token.token_id for token in others if token.token_id in denied_ids and token.owner in denied_owners
    }
    return [token for token in tokens if token.token_id not in hidden]


def _described(token: DelegationTokenRecord, secret_key: bytes) -> DescribedDelegationToken:
    owner_type, owner_name = parts(token.owner)
    requester_type, requester_name = parts(token.requester)
    renewers = map(parts, token.renewers)
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in renewers
        ],
    )
