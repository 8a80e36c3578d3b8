"""Listeners with OAUTHBEARER: keys of files and URLs, sessions, clients of others, and what is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from joserfc import jwk
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.oauth_listeners import SIGNED_HANDLER, UNSECURED_HANDLER
from pykafka_broker.config.sources import load_config
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.cli.conftest import RunningBroker
from tests.support.oauth import AUDIENCE, ISSUER, claims, initial, key_set, signed, unsigned
from tests.support.sasl import AT_ONCE

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LISTENERS = {
    **AT_ONCE,
    "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.clients.oauthbearer.sasl.jaas.config": f"{MODULE} required;",
}
UNSECURED = {
    **LISTENERS,
    "listener.name.clients.oauthbearer.sasl.jaas.config": (
        f'{MODULE} required unsecuredValidatorAllowableClockSkewMs="3000";'
    ),
}


def now_ms() -> int:
    return int(time.time() * 1_000)


def with_keys(url: str, **more: str) -> dict[str, str]:
    """Signed tokens of the issuer are accepted."""
    prefix = "listener.name.clients.oauthbearer.sasl"
    return {
        **LISTENERS,
        f"{prefix}.oauthbearer.jwks.endpoint.url": url,
        f"{prefix}.server.callback.handler.class": SIGNED_HANDLER,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        **more,
    }


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    file = tmp_path / "keys of the issuer.json"
    file.write_bytes(key_set())
    return file.as_uri()


class Answer:
    """How the token of one exchange is answered."""

    def __init__(self, told: Any) -> None:
        self.error = ErrorCode(told.error_code)
        self.told = bytes(told.auth_bytes)
        self.lifetime_ms = told.session_lifetime_ms


async def answered(user: User, token: str) -> Answer:
    await user.send(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    return Answer(await user.send(SaslAuthenticateRequest(auth_bytes=initial(token)), 2))


async def logs_in(home: Home, token: str) -> Answer:
    listener = home.broker.node.listeners.listeners["CLIENTS"]
    async with await User.connect(f"127.0.0.1:{listener.port}") as user:
        return await answered(user, token)


async def test_the_keys_of_a_file(key_file: str) -> None:
    home = Home(with_keys(key_file, **{"connections.max.reauth.ms": "9000000"}), listen=None)
    at_ms = home.clock.now_ms()
    async with home.new_broker():
        accepted = await logs_in(home, signed(claims(at_ms)))
        assert (accepted.error, accepted.told) == (ErrorCode.NONE, b"")
        # The token ends before the session would have to.
        assert 3_590_000 < accepted.lifetime_ms <= 3_600_000
        for token in (
            unsigned(claims(at_ms)),
            signed(claims(at_ms, iss="https://other.example")),
            signed(claims(at_ms), jwk.RSAKey.generate_key(2048, {"kid": "rsa"})),
        ):
            assert (await logs_in(home, token)).told == b'{"status":"invalid_token"}'


async def test_who_has_logged_in_is_the_subject_of_the_token(key_file: str) -> None:
    home = Home(with_keys(key_file), listen=None)
    async with home.new_broker():
        listener = home.broker.node.listeners.listeners["CLIENTS"]
        async with await User.connect(f"127.0.0.1:{listener.port}") as user:
            await answered(user, signed(claims(home.clock.now_ms())))
            assert await user.topics() == {}
            connections = home.broker.node.listeners.shared.connections
            assert "User:alice" in [getattr(one, "principal", None) for one in connections]


async def test_tokens_without_a_signature_where_they_are_asked_for() -> None:
    home = Home(UNSECURED, listen=None)
    async with home.new_broker():
        at_ms = home.clock.now_ms()
        assert (await logs_in(home, unsigned(claims(at_ms)))).told == b""
        for refused in (claims(at_ms, exp=1), claims(at_ms, sub="\ud800")):
            assert (await logs_in(home, unsigned(refused))).told == b'{"status":"invalid_token"}'


class Issuer(HTTPServer):
    """Publishes keys; `published` may be changed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Publishing)
        self.published: bytes | None = None


class Publishing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Issuer)
        content = self.server.published
        if content is None:
            self.send_response(503)
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Nothing."""


@contextmanager
def issuing() -> Iterator[Issuer]:
    with Issuer() as issuer:
        thread = threading.Thread(target=issuer.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            issuer.shutdown()
            thread.join()


def url_of(issuer: Issuer) -> str:
    return f"http://127.0.0.1:{issuer.server_port}/keys"


async def waits_for(home: Home, token: str) -> None:
    """Until a token is accepted, while the time of the broker passes."""
    async with asyncio.timeout(30):
        while (await logs_in(home, token)).told:
            await home.clock.pass_time(1)


async def test_the_keys_of_a_url_are_fetched_and_fetched_again() -> None:
    with issuing() as issuer:
        settings = {"sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "1"}
        home = Home(with_keys(url_of(issuer), **settings), listen=None)
        async with home.new_broker():
            at_ms = home.clock.now_ms()
            token = signed(claims(at_ms))
            # The issuer is not there yet: nobody gets in, and the broker serves.
            assert (await logs_in(home, token)).told
            issuer.published = key_set()
            await waits_for(home, token)

            new = jwk.RSAKey.generate_key(2048, {"kid": "new"})
            issuer.published = key_set(new)
            by_new = signed(claims(at_ms), new)
            assert (await logs_in(home, by_new)).told  # it is asked for now
            await waits_for(home, by_new)
            # What it does not publish any more does not count any more.
            assert (await logs_in(home, token)).told == b'{"status":"invalid_token"}'


PREFIX = "listener.name.clients.oauthbearer.sasl"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "has no keys that verify the tokens"),
        ({f"{PREFIX}.server.callback.handler.class": SIGNED_HANDLER}, "has no keys that verify the tokens"),
        ({f"{PREFIX}.server.callback.handler.class": "com.example.Own"}, "names code for Java"),
        ({"sasl.oauthbearer.jwt.validator.class": "com.example.Own"}, "names code for Java"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "https://x/"}, "meant for others"),
        (
            {
                "sasl.oauthbearer.jwks.endpoint.url": "ftp://x/",
                "sasl.oauthbearer.expected.issuer": "x",
            },
            "begins with https:",
        ),
        (
            {
                "sasl.oauthbearer.jwks.endpoint.url": "https://x/",
                "sasl.oauthbearer.expected.issuer": "x",
                "sasl.oauthbearer.sub.claim.name": " ",
            },
            "must not be empty",
        ),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "Kerberos needs a library of the system"),
        (
            {
                f"{PREFIX}.server.callback.handler.class": UNSECURED_HANDLER,
                f"{PREFIX}.jaas.config": f'{MODULE} required unsecuredValidatorAllowableClockSkewMs="x";',
            },
            "number of milliseconds",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.clients.plain.sasl.jaas.config": f"{MODULE} required;",
                "listener.name.clients.plain.sasl.server.callback.handler.class": "com.example.Own",
            },
            "names code for Java",
        ),
    ],
)
def test_what_cannot_be_had_is_refused_in_a_sentence(settings: dict[str, str], reason: str) -> None:
    overrides = [f"{key}={value}" for key, value in {**LISTENERS, **settings}.items()]
    with pytest.raises(ConfigError, match=reason):
        load_config(overrides=overrides)


class Provider(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token

    def extensions(self) -> dict[str, str]:
        return {"traceId": "123"}


def test_clients_of_others_log_in_with_signed_tokens(tmp_path: Path, key_file: str) -> None:
    overrides = [f"{key}={value}" for key, value in with_keys(key_file).items()]
    token = signed(claims(now_ms()))
    with RunningBroker(tmp_path / "data", None, overrides) as broker:
        secured = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        admin = KafkaAdminClient(
            bootstrap_servers=broker.address, sasl_oauth_token_provider=Provider(token), **secured
        )
        assert admin.list_topics() == []
        admin.close()
        properties: dict[str, Any] = {
            "bootstrap.servers": broker.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda config: (token, time.time() + 3_600, "alice", {"traceId": "123"}),
        }
        librdkafka = AdminClient(properties)
        assert librdkafka.list_topics(timeout=30).topics == {}


@pytest.mark.slow
def test_javas_client_logs_in_with_a_token_of_its_own(tmp_path: Path) -> None:
    overrides = [f"{key}={value}" for key, value in UNSECURED.items()]
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={MODULE} required unsecuredLoginStringClaim_sub="alice";\n'
    )
    with RunningBroker(tmp_path / "data", None, overrides) as broker:
        tool = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.address)
        secured = ("--command-config", str(properties))
        assert "Created topic of-java" in run_tool(*tool, "--create", "--topic", "of-java", *secured)
        assert run_tool(*tool, "--list", *secured).split() == ["of-java"]
