"""ExpireDelegationToken (40): tokens go."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
)
from pykafka_broker.sasl.delegation_tokens import token_password
from pykafka_broker.testing.user import User
from tests.apis.delegation_tokens import (
    a_broker,
    created,
    described,
    listener,
    session_by,
    signed_in,
)
from tests.support.sasl import BOB


async def test_a_token_is_removed() -> None:
    async with a_broker() as home, signed_in(home) as alice, signed_in(home, BOB) as bob:
        token = await created(alice, "bob")
        renewed = await bob.send(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5_000), 2)
        assert renewed.error_code == 0
        assert renewed.expiry_timestamp_ms < token.expiry_timestamp_ms
        removed = await alice.send(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
        assert removed.error_code == 0
        assert await described(alice) == []
        again = await alice.send(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
        assert again == ExpireDelegationTokenResponse(
            error_code=int(ErrorCode.DELEGATION_TOKEN_NOT_FOUND), expiry_timestamp_ms=0
        )
        async with await User.connect(listener(home)) as holder:
            error, _ = await session_by(holder, token.token_id, token_password(token.hmac))
            assert error is ErrorCode.SASL_AUTHENTICATION_FAILED
