"""ExpireDelegationToken: who may do so, and until when tokens live then."""

from __future__ import annotations

from interop.conformance.apis.create_delegation_token import (
    WITH_TOKENS,
    created,
    expired,
    holder,
    succeeds,
    user,
)
from interop.conformance.apis.sasl_scram import WITH_SCRAM
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from pykafka_broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest


def expiry(token: CreateDelegationTokenResponse, period_ms: int) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=bytes(token.hmac), expiry_time_period_ms=period_ms)


@conversation(settings=WITH_TOKENS)
def the_owner_and_a_renewer(talk: Talk) -> None:
    alice, bob = user(talk, "alice"), user(talk, "bob")
    token = created(alice, "bob")
    for period_ms in (20_000, 150_000, 900_000, 2**63 - 1):
        alice.ask(expiry(token, period_ms), until=succeeds)
    bob.ask(expiry(token, 30_000))
    bob.ask(expiry(token, -5))
    alice.ask(expiry(token, -1), E.DELEGATION_TOKEN_NOT_FOUND, until=lambda answer: answer.error_code != 0)


@conversation(settings=WITH_TOKENS)
def others(talk: Talk) -> None:
    alice, bob, carol = (user(talk, name) for name in ("alice", "bob", "carol"))
    token = created(alice, "bob", owner="carol")
    carol.ask(expiry(token, 30_000), until=succeeds)
    alice.ask(expiry(token, 30_000), E.DELEGATION_TOKEN_OWNER_MISMATCH)
    bob.ask(expiry(token, 30_000))


@conversation(settings=WITH_TOKENS)
def an_hmac_of_no_token(talk: Talk) -> None:
    alice = user(talk, "alice")
    for hmac in (b"", b"unknown", bytes(64)):
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1)
        alice.ask(request, E.DELEGATION_TOKEN_NOT_FOUND)


@conversation(settings=WITH_TOKENS)
def a_token_that_has_expired(talk: Talk) -> None:
    token = expired(talk)
    user(talk, "alice").ask(expiry(token, 5_000), E.DELEGATION_TOKEN_EXPIRED)
    user(talk, "carol").ask(expiry(token, 5_000), E.DELEGATION_TOKEN_OWNER_MISMATCH)


@conversation(settings=WITH_SCRAM)
def there_are_no_tokens(talk: Talk) -> None:
    request = ExpireDelegationTokenRequest(hmac=b"hmac", expiry_time_period_ms=-1)
    user(talk, "alice").ask(request, E.DELEGATION_TOKEN_AUTH_DISABLED)


@conversation
def a_plain_connection(talk: Talk) -> None:
    request = ExpireDelegationTokenRequest(hmac=b"hmac", expiry_time_period_ms=-1)
    talk.ask(request, E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    talk.controllers().ask(request, E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


@conversation(settings=WITH_TOKENS)
def the_holder_of_a_token(talk: Talk) -> None:
    token = created(user(talk, "alice"))
    holder(talk, token).ask(expiry(token, 5_000), E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
