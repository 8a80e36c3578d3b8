"""CreateDelegationToken: who may have tokens for whom, how long they live, and how their holders log in."""

from __future__ import annotations

import time
from typing import Any

from interop.conformance.apis.sasl_scram import WITH_SCRAM, chosen, told
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from pykafka_broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from pykafka_broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from pykafka_broker.sasl.delegation_tokens import token_password
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS

WITH_TOKENS = {
    **WITH_SCRAM,
    "delegation.token.secret.key": "conformance",
    "delegation.token.max.lifetime.ms": "200000",
    "delegation.token.expiry.time.ms": "100000",
}
WITH_TOKENS_AND_ACLS = {
    **WITH_TOKENS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:bob;User:ANONYMOUS",
}


def creation(
    *renewers: str, owner: tuple[str | None, str | None] = (None, None), lifetime_ms: int = -1
) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type=owner[0],
        owner_principal_name=owner[1],
        renewers=[CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=lifetime_ms,
    )


def user(talk: Talk, name: str) -> Talk:
    """A connection on which a user has logged in."""
    other = talk.another()
    other.log_in(name)
    return other


def created(talk: Talk, *renewers: str, owner: str | None = None) -> CreateDelegationTokenResponse:
    """A token that the node of this connection knows."""
    kind = None if owner is None else "User"
    token: CreateDelegationTokenResponse = talk.do(creation(*renewers, owner=(kind, owner)))
    while token.token_id not in known_to(talk):
        time.sleep(0.02)
    return token


def expired(talk: Talk) -> CreateDelegationTokenResponse:
    """A token of alice that has expired."""
    alice, carol = user(talk, "alice"), user(talk, "carol")
    token = created(alice)
    hmac = bytes(token.hmac)
    alice.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=0), until=succeeds)
    # Of a token that lives carol is told that it is not hers.
    carol.ask(
        RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=-1),
        E.DELEGATION_TOKEN_EXPIRED,
        until=lambda answer: answer.error_code == E.DELEGATION_TOKEN_EXPIRED,
    )
    return token


def succeeds(answer: Any) -> bool:
    """The controller may know a token later than the broker that was asked for it."""
    return bool(answer.error_code == 0)


def known_to(talk: Talk) -> set[str]:
    """The ids of the tokens that a user sees by now, also those of other conversations, which get no name."""
    answer = talk.send(DescribeDelegationTokenRequest(owners=None), version=3).receive()
    return {token.token_id for token in answer.tokens}


def challenge(talk: Talk, client: ScramClient) -> bytes:
    """The server's answer to the first message of a holder; the salt is random."""
    answer = bytes(talk.do(told(client.first())).auth_bytes)
    _, salt, iterations = answer.split(b",")
    talk.note("iterations", iterations.decode())
    assert len(salt) > len("s=")
    return answer


def client_of(token: CreateDelegationTokenResponse, mechanism: str = "SCRAM-SHA-256") -> ScramClient:
    """The holder of a token."""
    password = token_password(bytes(token.hmac))
    return ScramClient(SCRAM_MECHANISMS[mechanism], token.token_id, password, "nonce", by_token=True)


def holder(talk: Talk, token: CreateDelegationTokenResponse) -> Talk:
    """A connection on which somebody has logged in with a token."""
    other, client = chosen(talk.another(), "SCRAM-SHA-256"), client_of(token)
    other.do(told(client.final(challenge(other, client))))
    return other


@conversation(settings=WITH_TOKENS)
def a_token_is_created(talk: Talk) -> None:
    alice = user(talk, "alice")
    alice.ask(creation())
    alice.ask(creation("bob", "carol", "bob"))
    alice.ask(creation(""))


@conversation(settings=WITH_TOKENS)
def how_long_a_token_may_live(talk: Talk) -> None:
    alice = user(talk, "alice")
    for lifetime_ms in (-2, 0, 50_000, 150_000, 200_000, 900_000, 2**63 - 1, -(2**63)):
        alice.ask(creation(lifetime_ms=lifetime_ms))


@conversation("3+", settings=WITH_TOKENS)
def on_behalf_of_others(talk: Talk) -> None:
    alice = user(talk, "alice")
    for kind, name in (
        ("User", "carol"),
        ("User", "alice"),
        ("User", ""),
        ("User", None),
        (None, ""),
        ("Group", "staff"),
        ("", "carol"),
        ("User", "with:colon, and comma"),
    ):
        alice.ask(creation("bob", owner=(kind, name)))
    alice.ask(creation(owner=(None, "carol")), E.UNKNOWN_SERVER_ERROR)


@conversation(settings=WITH_TOKENS)
def renewers_are_users(talk: Talk) -> None:
    alice = user(talk, "alice")
    request = creation("bob")
    request.renewers.append(CreatableRenewers(principal_type="Group", principal_name="staff"))
    alice.ask(request, E.INVALID_PRINCIPAL_TYPE)
    request.renewers[1].principal_type = "user"
    alice.ask(request, E.INVALID_PRINCIPAL_TYPE)


@conversation(settings=WITH_SCRAM)
def there_are_no_tokens(talk: Talk) -> None:
    alice = user(talk, "alice")
    alice.ask(creation("bob"), E.DELEGATION_TOKEN_AUTH_DISABLED)
    request = creation("bob")
    request.renewers[0].principal_type = "Group"
    alice.ask(request, E.INVALID_PRINCIPAL_TYPE)


@conversation
def a_plain_connection(talk: Talk) -> None:
    talk.ask(creation("bob"), E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    talk.controllers().ask(creation("bob"), E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


@conversation(settings=WITH_TOKENS)
def the_holder_of_a_token_logs_in(talk: Talk) -> None:
    alice = user(talk, "alice")
    for mechanism in SCRAM_MECHANISMS:
        token = created(alice, "bob")
        other, client = chosen(talk.another(), mechanism), client_of(token, mechanism)
        answer = other.do(told(client.final(challenge(other, client))))
        client.verify(bytes(answer.auth_bytes))
        other.note("lifetime in ten seconds", str(round(answer.session_lifetime_ms / 10_000)))
        other.ask(creation(), E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


@conversation(settings=WITH_TOKENS)
def who_has_no_token_is_kept_out(talk: Talk) -> None:
    token = created(user(talk, "alice"))
    for name, is_token in (("alice", True), ("unknown", True), (token.token_id, False)):
        other = chosen(talk.another(), "SCRAM-SHA-512")
        suffix = ",tokenauth=true" if is_token else ""
        other.ask(told(f"n,,n={name},r=nonce{suffix}".encode()), E.SASL_AUTHENTICATION_FAILED)
        other.is_closed()
    other = chosen(talk.another(), "SCRAM-SHA-512")
    mechanism = SCRAM_MECHANISMS["SCRAM-SHA-512"]
    client = ScramClient(mechanism, token.token_id, "wrong", "nonce", by_token=True)
    other.ask(told(client.final(challenge(other, client))), E.SASL_AUTHENTICATION_FAILED)
    other.is_closed()


@conversation("3+", settings=WITH_TOKENS_AND_ACLS)
def tokens_of_others_need_an_acl(talk: Talk) -> None:
    alice, bob = user(talk, "alice"), user(talk, "bob")
    alice.ask(creation(owner=("User", "carol")), E.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    request = creation("bob", owner=("User", "carol"))
    request.renewers[0].principal_type = "Group"
    alice.ask(request, E.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    alice.ask(creation(owner=("User", "alice")))
    bob.ask(creation(owner=("User", "carol")))
