"""What was done to other brokers and clients is done to this one: the attacks of CVEs that no other test
makes, and the tables in SECURITY.md that name tests.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from pykafka_broker.cli.logging_setup import KafkaFormatter
from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config import ConfigError
from pykafka_broker.config.oauth_listeners import SIGNED_HANDLER
from pykafka_broker.config.sources import load_config
from pykafka_broker.protocol.errors import ErrorCode, ProtocolError
from pykafka_broker.protocol.messages import describe_configs as describing
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from pykafka_broker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest
from pykafka_broker.protocol.records.batch import Codec, build_batch
from pykafka_broker.protocol.records.compression import compress
from pykafka_broker.sasl import plain, scram_server
from pykafka_broker.sasl.plain import plain_token
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.sasl import AT_ONCE, PLAIN_LISTENER, authenticate, principals, serving
from tests.support.scram import altering, put

REPOSITORY = Path(__file__).parents[2]
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice;User:ANONYMOUS",
    **AT_ONCE,
}


@asynccontextmanager
async def super_user(**settings: str) -> AsyncIterator[tuple[Home, User]]:
    """Alice, who may do everything."""
    async with serving({**AUTHORIZED, **settings}) as (home, alice):
        assert (await authenticate(alice)).error_code == 0
        yield home, alice


# -- the table -------------------------------------------------------------------------------------------


#: Those that concern a broker, its client, or what it is made of.
CVES = """
2017-12610 2018-1288 2018-17196 2019-12399 2021-4104 2021-38153 2021-44228 2021-45046 2022-23302 2022-23305
2022-23307 2022-34917 2023-25194 2023-34455 2023-50976 2024-27309 2024-31141 2024-56128 2025-27817 2025-27818
2025-27819 2026-10142 2026-10143 2026-33557 2026-33558 2026-35554 2026-41115 2026-82266 2026-83525 2026-110985
2026-111073 2026-111108 2026-111115
"""


def table() -> list[tuple[str, list[str]]]:
    """The rows of SECURITY.md: the CVEs of each, and its tests."""
    rows = [line.strip("|").split("|") for line in (REPOSITORY / "SECURITY.md").read_text().splitlines()]
    return [
        (cves, re.findall(r"`(tests/[^`]+)`", tests))
        for cves, _, tests in (row for row in rows if len(row) == 3)
        if "CVE-" in cves
    ]


def test_every_cve_has_tests_that_there_are() -> None:
    rows = table()
    told = sorted(name for cves, _ in rows for name in re.findall(r"CVE-([\d-]+)", cves))
    assert told == sorted(CVES.split())
    for cves, tests in rows:
        assert tests, f"{cves} has no test"
        for test in tests:
            file, _, name = test.partition("::")
            assert re.search(rf"^(async )?def {name}\(", (REPOSITORY / file).read_text(), re.MULTILINE), test


def test_what_the_page_says_is_tested_somewhere_that_there_is() -> None:
    page = (REPOSITORY / "SECURITY.md").read_text()
    paths = set(re.findall(r"`((?:tests|interop|docs)/[^`:]+)", page))
    assert paths
    assert {path for path in paths if not (REPOSITORY / path).exists()} == set()
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.findall(r"`make (\w+)`", page))
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


# -- logins ----------------------------------------------------------------------------------------------


async def test_nobody_logs_in_for_somebody_else() -> None:
    """CVE-2017-12610: who knew a password could act for any user, whom he named beside it."""
    async with serving(AUTHORIZED) as (home, user):
        token = b"alice\0" + plain_token("bob", "bob-secret").lstrip(b"\0")
        assert (await authenticate(user, token)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert {*principals(home)} <= {"User:ANONYMOUS"}
        assert await user.is_closed()


async def test_passwords_and_proofs_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CVE-2021-38153: a comparison that ends at the first difference tells how much was right. Here only
    `compare_digest` decides: one that finds everything equal lets everybody in. That is asked instead of a
    clock, which shows the difference of one byte only after many logins, and not on a busy machine.
    """
    async with serving(AT_ONCE) as (_, user):
        assert (await authenticate(user, plain_token("alice", "guessed"))).error_code
    for module in (plain, scram_server):
        monkeypatch.setattr(module.hmac, "compare_digest", lambda one, other: True)
    async with serving(AT_ONCE) as (_, user):
        assert (await authenticate(user, plain_token("alice", "guessed"))).error_code == 0


def test_a_broker_that_could_not_check_tokens_does_not_start() -> None:
    """CVE-2026-33557, CVE-2026-110985: where no keys were configured, any token was accepted."""
    listener = "listener.name.clients.oauthbearer.sasl"
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        ),
        f"{listener}.server.callback.handler.class": SIGNED_HANDLER,
    }
    with pytest.raises(ConfigError, match=re.escape("sasl.oauthbearer.jwks.endpoint.url")):
        load_config(overrides=settings)


# -- configurations and logs -----------------------------------------------------------------------------

MODULES = [
    "com.sun.security.auth.module.JndiLoginModule required user.provider.url=ldap://127.0.0.1:1/x;",
    "com.sun.security.auth.module.LdapLoginModule required userProvider=ldap://127.0.0.1:1/x;",
    "os.system required;",
]


@pytest.mark.parametrize("module", MODULES)
async def test_a_configuration_names_no_code(module: str) -> None:
    """CVE-2023-25194, CVE-2025-27818, CVE-2025-27819: a login module could be any class, such as one that
    asks a server of the attacker for code. One that this broker does not have is refused, for the next start
    would fail with it.
    """
    async with super_user() as (home, alice):
        key = "listener_name_clients_plain_sasl_jaas_config"
        answered = await alice.try_to_alter(ResourceType.BROKER, str(home.broker.node_id), **{key: module})
        assert answered == ErrorCode.INVALID_REQUEST
        async with await User.connect(home.broker.bootstrap_servers) as again:
            assert (await authenticate(again)).error_code == 0


async def test_a_client_reads_no_file_and_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CVE-2024-31141, CVE-2025-27817: values of clients named files, variables and addresses, which were
    read. Where the node itself has config providers, a client's value is still a text.
    """
    (tmp_path / "secret.properties").write_text("key=from-the-file\n")
    monkeypatch.setenv("PYKAFKA_TEST_SECRET", "from-the-environment")
    providers = {
        "config.providers": "file,env",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    async with super_user(**providers) as (home, alice):
        await alice.create_topic("orders")
        for text in (f"${{file:{tmp_path}/secret.properties:key}}", "${env:PYKAFKA_TEST_SECRET}"):
            key = "follower_replication_throttled_replicas"
            assert await alice.try_to_alter(ResourceType.TOPIC, "orders", **{key: text})
        node = str(home.broker.node_id)
        key_file = {"sasl_oauthbearer_jwks_endpoint_url": "file:///etc/passwd"}
        assert await alice.try_to_alter(ResourceType.BROKER, node, **key_file)


async def test_a_log_line_is_text(caplog: pytest.LogCaptureFixture) -> None:
    """CVE-2021-44228 and those after it: what a client sent was carried out when it was logged, and a line
    break in it began a line of the client's own.
    """
    name = "${jndi:ldap://127.0.0.1:1/x}\n%s ERROR forged {0}"
    with caplog.at_level(logging.DEBUG):
        async with serving(AUTHORIZED) as (home, user):
            assert (await authenticate(user, plain_token(name, "x"))).error_code
        async with (
            serving(AUTHORIZED) as (home, _),
            await User.connect(home.broker.bootstrap_servers, client_id=name) as bob,
        ):
            assert (await authenticate(bob, plain_token("bob", "bob-secret"))).error_code == 0
            assert await bob.try_to_create_topic("orders") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    lines = [KafkaFormatter().format(record) for record in caplog.records if not record.exc_info]
    assert any("is Denied operation = CREATE" in line for line in lines)
    assert any("${jndi:ldap://127.0.0.1:1/x}" in line for line in lines)
    assert not [line for line in lines if "\n" in line]


# -- bytes -----------------------------------------------------------------------------------------------


async def test_records_stay_in_their_topic() -> None:
    """CVE-2026-35554: a buffer that was used again while its bytes were on their way put them into another
    topic. Here a hundred requests for two topics come at once, and share the buffer that receives them.
    """
    async with Home().running() as user:
        for topic in ("left", "right"):
            await user.create_topic(topic)
        for number in range(100):
            topic = ("left", "right")[number % 2]
            records = build_batch([(0, None, b"%s %d" % (topic.encode(), number) * 50, ())])
            data = producing.PartitionProduceData(index=0, records=records)
            asked = producing.TopicProduceData(name=topic, partition_data=[data])
            user.write(producing.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[asked]), 12)
        for _ in range(100):
            answer = await user.read(0, 12)
            assert answer.responses[0].partition_responses[0].error_code == 0
        for parity, topic in enumerate(("left", "right")):
            wanted = [b"%s %d" % (topic.encode(), number) * 50 for number in range(parity, 100, 2)]
            assert await user.values(topic) == wanted


@pytest.mark.parametrize("length", [2**31 - 1, 1 << 30, -1, 0])
def test_our_client_believes_no_length_of_a_server(length: int) -> None:
    """CVE-2026-10142: a client made room for as many bytes as the first four of an answer announced."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(1 << 16)
                accepted.sendall(length.to_bytes(4, "big", signed=True) + bytes(64))

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = server.getsockname()
        with pytest.raises(ProtocolError, match=r"byte|frame|Kafka"):  # noqa: SIM117 - one statement raises
            with closing(BlockingConnection(Address(host, port))) as connection:
                connection.send(ApiVersionsRequest(), 0)
        thread.join()


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
async def test_telemetry_is_decompressed_up_to_its_limit(codec: Codec) -> None:
    """CVE-2026-111073: a client's metrics were decompressed without a limit. Here it is
    `telemetry.max.bytes`, 1 MiB by default.
    """
    bomb = compress(codec, bytes(1 << 24))
    async with Home(overrides={"telemetry.receiver.enable": "true"}).running() as user:
        asked = await user.send(GetTelemetrySubscriptionsRequest(client_instance_id=b"1" * 16), 0)
        telemetry = PushTelemetryRequest(
            client_instance_id=b"1" * 16,
            subscription_id=asked.subscription_id,
            terminating=False,
            compression_type=codec,
            metrics=bomb,
        )
        tracemalloc.start()
        try:
            answer = await user.send(telemetry, 0)
            assert tracemalloc.get_traced_memory()[1] < 1 << 23
        finally:
            tracemalloc.stop()
        assert answer.error_code == ErrorCode.INVALID_RECORD


async def test_a_credential_is_never_shown_again() -> None:
    """CVE-2019-12399: secrets came back in plain text. A login is listed as one that is there, without its
    value, and of a user's password only how it is kept is told.
    """
    jaas = "listener_name_clients_plain_sasl_jaas_config"
    login = PLAIN_LISTENER[jaas.replace("_", ".")]
    async with super_user() as (home, alice):
        node = str(home.broker.node_id)
        await alice.alter_broker(home.broker.node_id, **{jaas: login.replace("bob-secret", "new-secret")})
        asked = describing.DescribeConfigsResource(
            resource_type=ResourceType.BROKER, resource_name=node, configuration_keys=None
        )
        answer = await alice.send(describing.DescribeConfigsRequest(resources=[asked]), 4)
        shown = {config.name: config for config in answer.results[0].configs}
        assert (shown[jaas.replace("_", ".")].value, shown[jaas.replace("_", ".")].is_sensitive) == (
            None,
            True,
        )

        assert (await alice.send(altering(put("carol")), 0)).results[0].error_code == 0
        users = await alice.send(DescribeUserScramCredentialsRequest(users=[UserName(name="carol")]), 0)
        [known] = users.results[0].credential_infos
        assert (known.mechanism, known.iterations) == (1, 4096)
        assert "-secret" not in repr(answer)
