"""Nothing that a broker prints, logs or answers shows a secret of its users or of its configuration."""

from __future__ import annotations

import ast
import hashlib
import hmac
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import pykafka_broker
from pykafka_broker.cli.logging_setup import TRACE
from pykafka_broker.client.core.frames import framed, request_frame
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.oauth_listeners import SIGNED_HANDLER
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import describe_configs as describing
from pykafka_broker.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl import plain
from pykafka_broker.sasl.delegation_tokens import token_password
from pykafka_broker.sasl.plain import plain_token
from pykafka_broker.sasl.refusal import RefusedError
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, credential_of, salted_password
from pykafka_broker.system.processes import command_line
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.messages import declared
from pykafka_broker.testing.processes import PykafkaBroker
from pykafka_broker.testing.user import User
from pykafka_broker.tls.authority import Authority
from tests.apis.delegation_tokens import WITH_TOKENS, created, listener, signed_in
from tests.cli.conftest import RunningBroker, run_command
from tests.support.oauth import AUDIENCE, ISSUER, claims, initial, key_set, signed
from tests.support.sasl import ALICE, authenticate
from tests.support.scram import SALT, altering, put

SHA_256 = SCRAM_MECHANISMS["SCRAM-SHA-256"]
PACKAGE = Path(pykafka_broker.__file__).parent
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice;User:bob;User:ANONYMOUS",
}


class Secrets:
    """What must not be seen, in the forms in which it might be."""

    def __init__(self) -> None:
        self._forms: dict[str, str] = {}

    def add(self, name: str, value: bytes | str) -> None:
        data = value.encode() if isinstance(value, str) else value
        for form in (data.decode("latin-1"), data.hex(), repr(data)[2:-1], _base64(data)):
            if len(form) > 5:
                self._forms[form] = name

    def seen_in(self, text: str) -> set[str]:
        return {name for form, name in self._forms.items() if form in text}


def _base64(data: bytes) -> str:
    import base64

    return base64.b64encode(data).decode()


async def test_no_secret_is_in_the_log_of_details(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """CVE-2026-33558. Users log in and fail to, with PLAIN, SCRAM, a delegation token and a bearer token;
    credentials, tokens and keys are made and described.
    """
    secrets = Secrets()
    for password in ("alice-secret", "bob-secret", "wrong-secret", "password of carol", "the key of tokens"):
        secrets.add(password, password)
    secrets.add("the password of the key store", "store-secret")
    secrets.add("the client secret", "secret of the client")
    at_start, later = (_pem_of_a_server() for _ in range(2))
    for key, _ in (at_start, later):
        for line in key.splitlines()[1:-1]:
            secrets.add("the key of a server", line)
    salted = salted_password(SHA_256, "password of carol", SALT, 4096)
    carol = credential_of(SHA_256, salted, SALT, 4096)
    secrets.add("the salted password", salted)
    secrets.add("the stored key", carol.stored_key)
    secrets.add("the server key", carol.server_key)
    keys_of_issuer = tmp_path / "keys.json"
    keys_of_issuer.write_bytes(key_set())
    bearer = "listener.name.clients.oauthbearer.sasl"
    home = Home(
        {
            **WITH_TOKENS,
            **AUTHORIZER,
            "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0,SECURE://127.0.0.1:0",
            "listener.security.protocol.map": (
                "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,SECURE:SSL,CONTROLLER:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"{bearer}.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
            f"{bearer}.server.callback.handler.class": SIGNED_HANDLER,
            f"{bearer}.oauthbearer.jwks.endpoint.url": keys_of_issuer.as_uri(),
            f"{bearer}.oauthbearer.expected.issuer": ISSUER,
            f"{bearer}.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.client.credentials.client.secret": "secret of the client",
            "delegation.token.secret.key": "the key of tokens",
            "listener.name.inside.ssl.keystore.password": "store-secret",
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.key": at_start[0],
            "listener.name.secure.ssl.keystore.certificate.chain": at_start[1],
        },
        listen=None,
    )
    in_time = claims(home.clock.now_ms())
    tokens = signed(in_time), signed(in_time | {"iss": "https://other.example"})
    for bearer_token in tokens:
        for part in bearer_token.split("."):
            secrets.add("a bearer token", part)
    answers: list[object] = []
    with caplog.at_level(TRACE):
        async with home.new_broker() as broker:
            async with signed_in(home) as alice:
                answers.append(await alice.send(altering(put("carol")), 0))
                token = await created(alice)
                secrets.add("the token", token.hmac)
                secrets.add("the password of the token", token_password(token.hmac))
                answers.append(await alice.send(DescribeDelegationTokenRequest(owners=None), 3))
                keystore = {"listener_name_inside_ssl_keystore_password": "store-secret"}
                await alice.try_to_alter(ResourceType.BROKER, str(broker.node_id), **keystore)
                await alice.alter_broker(
                    broker.node_id,
                    listener_name_secure_ssl_keystore_key=later[0],
                    listener_name_secure_ssl_keystore_certificate_chain=later[1],
                )
                for kind, name in ((ResourceType.BROKER, str(broker.node_id)), (ResourceType.BROKER, "")):
                    described = await alice.send(_all_configs(int(kind), name), 4)
                    assert secrets.seen_in(repr(described)) == set()
            for attempt in (plain_token("alice", "wrong-secret"), ALICE + b"\0alice-secret", b"alice-secret"):
                async with await User.connect(listener(home)) as user:
                    await authenticate(user, attempt)
            await _scram(home, "carol", "password of carol")
            await _scram(home, "carol", "wrong-secret")
            await _scram(home, token.token_id, token_password(token.hmac), is_token=True)
            for bearer_token, refused in zip(tokens, (False, True), strict=True):
                async with await User.connect(listener(home)) as user:
                    await user.send(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
                    said = await user.send(SaslAuthenticateRequest(auth_bytes=initial(bearer_token)), 2)
                    assert bool(said.auth_bytes) == refused
            async with await User.connect(listener(home)) as user:
                # Where a request belongs, and again as bytes without one.
                user.write_bytes(framed(b"\0\0\0\0" + ALICE))
                assert await user.is_closed()
            async with await User.connect(listener(home)) as user:
                user.write_bytes(request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 0))
                user.write_bytes(framed(plain_token("alice", "wrong-secret")))
                await user.read_frame()
                assert await user.is_closed()
            text = repr(home.config()) + repr(broker.node.image) + repr(answers)
    assert len(caplog.records) > 20
    assert "SaslAuthenticate" in caplog.text
    assert secrets.seen_in(caplog.text) == set()
    assert secrets.seen_in(text) == set()


def _pem_of_a_server() -> tuple[str, str]:
    """Its key and its certificate."""
    issued = Authority.new(datetime.now(UTC), 1).for_server(["localhost"])
    return issued.key_pem.decode(), issued.certificate_pem.decode()


async def _scram(home: Home, user: str, password: str, *, is_token: bool = False) -> None:
    """A login over the wire, whatever its end."""
    mechanism = "SCRAM-SHA-256"
    client = ScramClient(SCRAM_MECHANISMS[mechanism], user, password, "clientnonce", is_token)
    async with await User.connect(listener(home)) as peer:
        await peer.send(SaslHandshakeRequest(mechanism=mechanism), 1)
        first = await peer.send(SaslAuthenticateRequest(auth_bytes=client.first()), 2)
        if not first.error_code:
            await peer.send(SaslAuthenticateRequest(auth_bytes=client.final(first.auth_bytes)), 2)


def _all_configs(kind: int, name: str) -> describing.DescribeConfigsRequest:
    resource = describing.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    return describing.DescribeConfigsRequest(resources=[resource], include_synonyms=True)


# -- commands --------------------------------------------------------------------------------------------


def test_who_has_a_port_is_told_without_what_it_was_started_with(tmp_path: Path) -> None:
    """The text of the error had all arguments of the process that has the port."""
    configured = {"delegation.token.secret.key": "the key of tokens"}
    with PykafkaBroker(configured, tmp_path / "first") as broker:
        assert broker.process is not None
        assert "the key of tokens" in command_line(broker.process.pid)
        second = [sys.executable, "-m", "pykafka_broker", "start", "--listen", broker.address]
        for folder in (tmp_path / "second", broker.data_dir):
            told = subprocess.run(
                [*second, "--data-dir", str(folder)], capture_output=True, text=True, check=False
            )
            assert told.returncode == 1
            assert f"process {broker.process.pid} (" in told.stderr
            assert "first/data)" in told.stderr
            assert "the key of tokens" not in told.stdout + told.stderr


def test_dumps_of_the_metadata_log_show_secrets_to_those_alone_who_ask(tmp_path: Path) -> None:
    """The keys of a user, and the password of a key, which the metadata log has to hold."""
    data = tmp_path / "data"
    password = "password-of-a-key"
    user = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
    assert run_command("format", "--data-dir", str(data), "--add-scram", user).status == 0
    with RunningBroker(data) as broker:
        on = ("-b", broker.address)
        secret = f"listener.name.plaintext.ssl.key.password={password}"
        settings = ("--set", secret, "--set", "num.io.threads=9")
        assert run_command("configs", "alter", "--broker", "1", *settings, *on).status == 0
    files = (str(data / "__cluster_metadata-0"), str(data / "bootstrap.checkpoint"))
    for how in ("--cluster-metadata-decoder", "--print-data-log"):
        for form in ((), ("--json",)):
            dumped = run_command("dump-log", *files, how, *form).out
            assert password not in dumped
            assert "[redacted]" in dumped
            assert "num.io.threads" in dumped
    decoded = run_command("dump-log", *files, "--cluster-metadata-decoder").out
    keys = re.findall(r'"(?:storedKey|serverKey)":"(.*?)"', decoded)
    assert set(keys) == {"[redacted]"}
    shown = run_command("dump-log", *files, "--cluster-metadata-decoder", "--show-secrets").out
    assert password in shown
    assert "[redacted]" not in shown


# -- repr ------------------------------------------------------------------------------------------------

#: Fields of messages that hold secrets, or may: a value of a configuration, a request that was passed on.
SECRET_FIELDS = {
    ("AlterableConfig", "value"),
    ("ConfigRecord", "value"),
    ("CreateDelegationTokenResponse", "hmac"),
    ("DescribedDelegationToken", "hmac"),
    ("EnvelopeRequest", "request_data"),
    ("EnvelopeResponse", "response_data"),
    ("ExpireDelegationTokenRequest", "hmac"),
    ("RenewDelegationTokenRequest", "hmac"),
    ("SaslAuthenticateRequest", "auth_bytes"),
    ("SaslAuthenticateResponse", "auth_bytes"),
    ("ScramCredentialUpsertion", "salted_password"),
    ("UserScramCredentialRecord", "server_key"),
    ("UserScramCredentialRecord", "stored_key"),
}


def test_the_repr_of_a_message_hides_what_only_its_owner_may_know() -> None:
    """A traceback or a log of requests may have it."""
    found = {
        (cls.__name__, field.name) for cls in declared() for field in schema_of(cls).fields if field.is_secret
    }
    assert found == SECRET_FIELDS
    request = SaslAuthenticateRequest(auth_bytes=ALICE)
    assert repr(request) == "SaslAuthenticateRequest(auth_bytes=[hidden])"
    nested = altering(put("carol"))
    assert "name='carol'" in repr(nested) and "salted_password=[hidden]" in repr(nested)


# -- comparisons -----------------------------------------------------------------------------------------

#: What names of values end with that must not be compared byte by byte.
SECRET_WORDS = (
    "password",
    "secret",
    "hmac",
    "proof",
    "stored_key",
    "server_key",
    "server_signature",
    "digest",
)
#: Packages that check no client's secret: digests of downloads and of rows, and an issuer for tests.
WITHOUT_SECRETS = ("spark", "testing")


def compared_by_an_operator(code: str) -> list[int]:
    """The lines that compare a secret with `==` or `!=`, and not with a constant."""
    found: list[int] = []
    if not any(word in code for word in SECRET_WORDS):
        return found  # parsing is slow
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Constant) for side in sides):
                continue
            names = [getattr(side, "attr", getattr(side, "id", "")) for side in sides]
            if any(name.endswith(SECRET_WORDS) for name in names):
                found.append(node.lineno)
    return found


def test_no_secret_is_compared_by_an_operator() -> None:
    """`==` ends at the first difference, and its time tells how much was right."""
    found = [
        f"{path}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in WITHOUT_SECRETS
        for line in compared_by_an_operator(path.read_text())
    ]
    assert found == []


def test_a_secret_that_is_compared_by_an_operator_is_found() -> None:
    code = "a == token.hmac\nself._password != sent\nproof == b''\nlen(proof) == n"
    assert compared_by_an_operator(code) == [1, 2]


def test_a_name_that_is_not_known_costs_what_a_wrong_password_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is counted, as time cannot be measured beside other tests."""
    work: list[str] = []
    compare, sha256 = hmac.compare_digest, hashlib.sha256

    def comparing(one: bytes, other: bytes) -> bool:
        work.append("compare")
        return compare(one, other)

    def hashing(data: bytes) -> Any:
        work.append("hash")
        return sha256(data)

    monkeypatch.setattr(hmac, "compare_digest", comparing)
    monkeypatch.setattr(hashlib, "sha256", hashing)
    done = []
    for user in ("alice", "nobody"):
        work.clear()
        with pytest.raises(RefusedError):
            plain.PlainServer({"alice": "alice-secret"}).respond(plain_token(user, "wrong"))
        done.append(list(work))
    assert done[0] == done[1] != []
