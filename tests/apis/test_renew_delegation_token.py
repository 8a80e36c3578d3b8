"""RenewDelegationToken (39)."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from pykafka_broker.testing.user import User
from tests.apis.delegation_tokens import (
    NOT_ALLOWED,
    a_broker,
    created,
    listener,
    signed_in,
)
from tests.support.sasl import BOB


async def test_the_owner_and_a_renewer_renew_a_token() -> None:
    async with a_broker() as home, signed_in(home) as alice, signed_in(home, BOB) as bob:
        token = await created(alice, "bob")
        for user, period_ms in ((alice, 7_000), (bob, 5_000)):
            answer = await user.send(
                RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms), 2
            )
            assert answer.error_code == 0
            assert 0 <= answer.expiry_timestamp_ms - token.issue_timestamp_ms - period_ms < 60_000


async def test_others_do_not() -> None:
    async with a_broker() as home, signed_in(home) as alice, signed_in(home, BOB) as bob:
        token = await created(alice)
        request = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
        assert await bob.send(request, 2) == RenewDelegationTokenResponse(
            error_code=int(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH), expiry_timestamp_ms=0
        )


async def test_nobody_asks_on_a_plain_connection() -> None:
    async with a_broker() as home, await User.connect(listener(home, "INSIDE")) as anybody:
        request = RenewDelegationTokenRequest(hmac=b"hmac", renew_period_ms=-1)
        assert await anybody.send(request, 2) == RenewDelegationTokenResponse(
            error_code=NOT_ALLOWED, expiry_timestamp_ms=-1
        )
