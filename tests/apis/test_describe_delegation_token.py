"""DescribeDelegationToken (41): who sees which tokens."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from tests.apis.delegation_tokens import (
    WITH_TOKENS,
    a_broker,
    created,
    creation,
    described,
    signed_in,
)
from tests.support.sasl import BOB


async def test_without_a_key_there_are_no_tokens() -> None:
    disabled = int(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    settings = {key: value for key, value in WITH_TOKENS.items() if "secret.key" not in key}
    async with a_broker(settings) as home, signed_in(home) as alice:
        answer = await alice.send(creation(), 3)
        assert (answer.error_code, answer.issue_timestamp_ms, answer.hmac) == (disabled, 0, b"")
        described = await alice.send(DescribeDelegationTokenRequest(owners=None), 3)
        assert described == DescribeDelegationTokenResponse(error_code=disabled, tokens=[])


async def test_tokens_of_others_need_an_acl() -> None:
    settings = {
        **WITH_TOKENS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:ANONYMOUS",
    }
    async with a_broker(settings) as home, signed_in(home) as alice, signed_in(home, BOB) as bob:
        denied = await bob.send(creation(owner="carol"), 3)
        assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (denied.principal_name, denied.token_requester_principal_name) == ("carol", "bob")
        own = await created(bob)
        of_carol = await created(alice, owner="carol")
        for_bob = await created(alice, "bob")
        assert set(await described(bob)) == {own.token_id, for_bob.token_id}
        assert set(await described(alice)) == {own.token_id, of_carol.token_id, for_bob.token_id}
