"""Nodes that log in to each other with bearer tokens, and commands that do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.oauth_listeners import UNSECURED_HANDLER
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.unsecured_login import unsecured_login_token
from pykafka_broker.testing.issuer import AUDIENCE, Issuer, issuing
from pykafka_broker.testing.user import User
from tests.broker.test_sasl_of_nodes import replicated
from tests.cli.conftest import Result, run_command
from tests.support.clusters import Cluster
from tests.support.oauth import initial
from tests.support.sasl import principals

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
WITH_TOKENS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
}
LISTENERS = ("plaintext", "controller")
#: As in Apache Kafka's own example.
UNSECURED = {
    **WITH_TOKENS,
    **{
        f"listener.name.{name}.oauthbearer.sasl.jaas.config": (
            f'{MODULE} unsecuredLoginStringClaim_sub="node";'
        )
        for name in LISTENERS
    },
}


def with_issuer(issuer: Issuer, secret: str = "node-secret") -> dict[str, str]:
    return {
        **WITH_TOKENS,
        **{f"listener.name.{name}.oauthbearer.sasl.jaas.config": f"{MODULE};" for name in LISTENERS},
        "sasl.oauthbearer.jwks.endpoint.url": issuer.key_set,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.token.endpoint.url": issuer.token_endpoint,
        "sasl.oauthbearer.client.credentials.client.id": "node",
        "sasl.oauthbearer.client.credentials.client.secret": secret,
    }


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing({"node": "node-secret", "alice": "alice-secret"}) as issuer:
        yield issuer


async def log_in(user: User, token: str) -> None:
    await user.send(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    answer = await user.send(SaslAuthenticateRequest(auth_bytes=initial(token)), 2)
    assert (answer.error_code, answer.auth_bytes) == (0, b"")


async def test_nodes_log_in_with_tokens_that_they_make() -> None:
    cluster = Cluster(3, overrides=UNSECURED)
    async with cluster.running(), cluster.user_of(1) as user:
        token = unsecured_login_token(
            {"unsecuredLoginStringClaim_sub": "alice"}, cluster.homes[1].clock.now_ms()
        )
        await log_in(user, token)
        await replicated(cluster, user, "orders")
        for home in cluster.homes.values():
            assert {"User:node"} <= set(principals(home)) <= {"User:node", "User:alice"}


async def test_nodes_log_in_with_tokens_of_an_identity_provider(issuer: Issuer) -> None:
    cluster = Cluster(3, overrides=with_issuer(issuer))
    async with cluster.running(), cluster.user_of(1) as user:
        await log_in(user, str(issuer.token(("alice", "alice-secret"))))
        await replicated(cluster, user, "orders")
        assert "User:node" in principals(cluster.homes[1])


def properties(issuer: Issuer, secret: str) -> str:
    """Those of a client, in the keys of Kafka's own clients."""
    return (
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url={issuer.token_endpoint}\n"
        f'sasl.jaas.config={MODULE} clientId="alice" clientSecret="{secret}";\n'
    )


async def test_a_command_logs_in_with_a_token(issuer: Issuer, tmp_path: Path) -> None:
    (tmp_path / "alice.properties").write_text(properties(issuer, "alice-secret"))
    (tmp_path / "mallory.properties").write_text(properties(issuer, "guess"))
    cluster = Cluster(1, overrides=with_issuer(issuer))
    async with cluster.running():
        address = cluster.homes[1].broker.bootstrap_servers

        async def describe(user: str) -> Result:
            config = str(tmp_path / f"{user}.properties")
            asked = ("topics", "list", "--bootstrap-server", address, "--command-config", config)
            return await asyncio.to_thread(run_command, *asked)

        known, refused = await describe("alice"), await describe("mallory")
    assert known.status == 0, known.err
    assert refused.status == 1
    assert f"The token of {issuer.token_endpoint} cannot be had: it answers with the status 401" in (
        refused.err
    )
    assert "guess" not in refused.err


@pytest.mark.parametrize(
    "changes, told",
    [
        ({"listener.name.plaintext.oauthbearer.sasl.jaas.config": f"{MODULE};"}, "names the user"),
        ({"sasl.login.callback.handler.class": "com.example.Handler"}, "names code for Java"),
        ({"sasl.login.refresh.window.factor": "-1"}, "must not be negative"),
    ],
)
def test_a_node_without_tokens_does_not_start(changes: dict[str, str], told: str) -> None:
    handler = {"sasl.server.callback.handler.class": UNSECURED_HANDLER}
    cluster = Cluster(3, overrides={**UNSECURED, **handler, **changes})
    match = f"on listener PLAINTEXT with OAUTHBEARER, and need tokens: .*{told}"
    with pytest.raises(ConfigError, match=match):
        cluster.homes[1].config()
