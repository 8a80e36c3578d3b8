"""CreateDelegationToken (38): tokens come, and log their holders in."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from pykafka_broker.sasl.delegation_tokens import token_hmac, token_password
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.delegation_tokens import (
    NOT_ALLOWED,
    WITH_TOKENS,
    a_broker,
    created,
    creation,
    described,
    listener,
    session_by,
    signed_in,
)


async def test_a_token_is_created_and_described() -> None:
    async with a_broker() as home, signed_in(home) as alice:
        token = await created(alice, "bob")

        assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
        assert token.expiry_timestamp_ms - token.issue_timestamp_ms == 10_000_000
        assert token.max_timestamp_ms - token.issue_timestamp_ms == 20_000_000
        assert token.hmac == token_hmac(b"the key", token.token_id)
        answer = await alice.send(DescribeDelegationTokenRequest(owners=None), 3)
        assert answer == DescribeDelegationTokenResponse(
            error_code=0,
            tokens=[
                DescribedDelegationToken(
                    principal_type="User",
                    principal_name="alice",
                    token_requester_principal_type="User",
                    token_requester_principal_name="alice",
                    issue_timestamp=token.issue_timestamp_ms,
                    expiry_timestamp=token.expiry_timestamp_ms,
                    max_timestamp=token.max_timestamp_ms,
                    token_id=token.token_id,
                    hmac=token.hmac,
                    renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")],
                )
            ],
        )
        assert await described(alice, "bob") == [token.token_id]
        assert await described(alice, "carol") == []
        nobody = await alice.send(DescribeDelegationTokenRequest(owners=[]), 3)
        assert nobody == DescribeDelegationTokenResponse(error_code=0, tokens=[])


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
async def test_the_holder_of_a_token_is_its_owner_until_it_expires(mechanism: str) -> None:
    async with a_broker() as home, signed_in(home) as alice:
        token = await created(alice, owner="carol")
        async with await User.connect(listener(home)) as holder:
            error, lifetime_ms = await session_by(
                holder, token.token_id, token_password(token.hmac), mechanism
            )
            assert error is ErrorCode.NONE
            assert 9_000_000 < lifetime_ms <= 10_000_000
            assert await holder.topics() == {}
            # Who has come with a token may not have another, nor keep this one alive.
            refused = await holder.send(creation(), 3)
            assert (refused.error_code, refused.principal_name) == (NOT_ALLOWED, "carol")
            assert await holder.send(
                RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), 2
            ) == RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=-1)
            assert await holder.send(
                ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2
            ) == ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=-1)
            assert await holder.send(
                DescribeDelegationTokenRequest(owners=None), 3
            ) == DescribeDelegationTokenResponse(error_code=NOT_ALLOWED, tokens=[])


async def test_a_wrong_token_lets_nobody_in() -> None:
    async with a_broker() as home, signed_in(home) as alice:
        token = await created(alice)
        for token_id, password in (
            (token.token_id, "wrong"),
            ("unknown", token_password(token.hmac)),
            ("alice", "alice-secret"),
        ):
            async with await User.connect(listener(home)) as holder:
                error, _ = await session_by(holder, token_id, password)
                assert error is ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_tokens_outlive_the_broker() -> None:
    home = Home(WITH_TOKENS, listen=None)
    async with home.new_broker(), signed_in(home) as alice:
        token = await created(alice)
    home = home.killed()
    async with home.new_broker(), await User.connect(listener(home)) as holder:
        error, _ = await session_by(holder, token.token_id, token_password(token.hmac))
        assert error is ErrorCode.NONE


async def test_nobody_asks_for_a_token_on_a_plain_connection() -> None:
    async with a_broker() as home, await User.connect(listener(home, "INSIDE")) as anybody:
        answer = await anybody.send(creation("bob", owner="carol"), 3)
        assert answer == CreateDelegationTokenResponse(
            error_code=NOT_ALLOWED,
            principal_type="User",
            principal_name="carol",
            token_requester_principal_type="User",
            token_requester_principal_name="ANONYMOUS",
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
            token_id="",
            hmac=b"",
        )


async def test_renewers_are_users() -> None:
    request = creation()
    request.renewers = [CreatableRenewers(principal_type="Group", principal_name="staff")]
    async with a_broker() as home, signed_in(home) as alice:
        answer = await alice.send(request, 3)
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        assert answer.issue_timestamp_ms == -1
