"""A broker with delegation tokens, who asks it for some, and who logs in with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.sasl import ALICE, AT_ONCE, PLAIN_LISTENER, authenticate

SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
WITH_TOKENS = {
    **PLAIN_LISTENER,
    **AT_ONCE,
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clients.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
    "listener.name.clients.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
    "delegation.token.secret.key": "the key",
    "delegation.token.max.lifetime.ms": "20000000",
    "delegation.token.expiry.time.ms": "10000000",
}
NOT_ALLOWED = int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def listener(home: Home, name: str = "CLIENTS") -> str:
    return f"127.0.0.1:{home.broker.node.listeners.listeners[name].port}"


@asynccontextmanager
async def signed_in(home: Home, token: bytes = ALICE) -> AsyncIterator[User]:
    async with await User.connect(listener(home)) as user:
        answer = await authenticate(user, token)
        assert answer.error_code == 0
        yield user


@asynccontextmanager
async def a_broker(settings: Mapping[str, str] = WITH_TOKENS) -> AsyncIterator[Home]:
    home = Home(settings, listen=None)
    async with home.new_broker():
        yield home


def creation(*renewers: str, owner: str | None = None, lifetime_ms: int = -1) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=lifetime_ms,
    )


async def created(user: User, *renewers: str, owner: str | None = None) -> CreateDelegationTokenResponse:
    answer: CreateDelegationTokenResponse = await user.send(creation(*renewers, owner=owner), 3)
    assert answer.error_code == 0
    return answer


async def described(user: User, *owners: str) -> Any:
    """The ids of the tokens that a user sees, of these owners if there are some."""
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    answer = await user.send(DescribeDelegationTokenRequest(owners=named or None), 3)
    assert answer.error_code == 0
    return [token.token_id for token in answer.tokens]


async def session_by(
    user: User, token_id: str, password: str, mechanism: str = "SCRAM-SHA-256"
) -> tuple[ErrorCode, int]:
    """The error, or the lifetime in ms, of a login with a token."""
    client = ScramClient(SCRAM_MECHANISMS[mechanism], token_id, password, "nonce", by_token=True)
    await user.send(SaslHandshakeRequest(mechanism=mechanism), 1)
    first = await user.send(SaslAuthenticateRequest(auth_bytes=client.first()), 2)
    if first.error_code:
        return ErrorCode(first.error_code), 0
    last = await user.send(SaslAuthenticateRequest(auth_bytes=client.final(bytes(first.auth_bytes))), 2)
    if not last.error_code:
        client.verify(bytes(last.auth_bytes))
    return ErrorCode(last.error_code), last.session_lifetime_ms
