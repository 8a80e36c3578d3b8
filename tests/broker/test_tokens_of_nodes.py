"""Delegation tokens in a cluster: any node creates them, and all let their holders in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from pykafka_broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from pykafka_broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from pykafka_broker.sasl.delegation_tokens import token_password
from pykafka_broker.testing.user import User
from tests.apis.delegation_tokens import NOT_ALLOWED, created, creation, session_by
from tests.broker.test_sasl_of_nodes import MODULES, WITH_PLAIN
from tests.support.clusters import Cluster
from tests.support.sasl import AT_ONCE, authenticate

WITH_TOKENS = {
    **WITH_PLAIN,
    **AT_ONCE,
    "listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": "the key",
}


@asynccontextmanager
async def holder_of(
    token: CreateDelegationTokenResponse, cluster: Cluster, node_id: int
) -> AsyncIterator[User]:
    """A connection to a node, which may hear of the token later than the node that created it."""
    async with asyncio.timeout(30):
        while True:
            async with cluster.user_of(node_id) as user:
                error, _ = await session_by(user, token.token_id, token_password(token.hmac))
                if error is ErrorCode.NONE:
                    yield user
                    return


async def test_every_node_creates_tokens_and_lets_their_holders_in() -> None:
    cluster = Cluster(3, overrides=WITH_TOKENS)
    async with cluster.running():
        for node_id in cluster.homes:
            async with cluster.user_of(node_id) as alice:
                await authenticate(alice)
                token = await created(alice)
                assert token.principal_name == "alice"
                for other in cluster.homes:
                    async with holder_of(token, cluster, other) as holder:
                        assert await holder.topics() == {}
                        assert (await holder.send(creation(), 3)).error_code == NOT_ALLOWED
                renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5_000)
                assert (await alice.send(renewal, 2)).error_code == ErrorCode.NONE
                removal = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
                assert (await alice.send(removal, 2)).error_code == ErrorCode.NONE
                assert (await alice.send(removal, 2)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
