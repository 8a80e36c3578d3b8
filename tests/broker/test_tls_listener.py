"""A listener with TLS: stock clients, who they are, keys that are replaced, and hostile handshakes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from pykafka_broker import Broker, load_config
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import ClientSecurity, Identity
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config import ConfigError
from pykafka_broker.network.connection import Connection
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

AUTHORITY = trustme.CA()


def pem(issued: trustme.LeafCert) -> str:
    """A key (PKCS #8) and its certificate."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return text + "".join(part.bytes().decode() for part in issued.cert_chain_pems)


def server(*hosts: str, unit: str = "servers") -> str:
    """A key and a certificate for these hosts."""
    return pem(AUTHORITY.issue_cert(*hosts, organization_unit_name=unit))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.pem").write_text(server("localhost", "127.0.0.1"))
    (tmp_path / "alice.pem").write_text(pem(AUTHORITY.issue_cert("a@example.org", common_name="alice")))
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path


def settings(folder: Path, **others: str) -> dict[str, str]:
    return {
        "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.clients.ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/, DEFAULT",
        **{name.replace("_", "."): value for name, value in others.items()},
    }


def of_client(folder: Path, *, key: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if key:
        context.load_cert_chain(str(folder / "alice.pem"))
    return context


def principals(home: Home) -> list[str]:
    connections = home.broker.node.listeners.shared.connections
    return [one.principal for one in connections if isinstance(one, Connection)]


def address(home: Home) -> tuple[str, int]:
    host, _, port = home.broker.bootstrap_servers.rpartition(":")
    return host, int(port)


#: ApiVersions v0 of a client without a name.
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")


async def ask(home: Home, context: ssl.SSLContext) -> tuple[asyncio.StreamWriter, bytes]:
    """An open connection, and the correlation id of the answer to its first request."""
    host, port = address(home)
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    writer.write(API_VERSIONS)
    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    return writer, answer[:4]


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def test_who_shows_a_certificate_is_the_user_whom_a_rule_makes_of_its_name(folder: Path) -> None:
    home = Home(settings(folder), listen=None)
    async with home.new_broker():
        alice, answered = await ask(home, of_client(folder, key=True))
        assert answered == b"\0\0\0\1"
        assert principals(home) == ["User:alice"]
        nobody, _ = await ask(home, of_client(folder))
        assert sorted(principals(home)) == ["User:ANONYMOUS", "User:alice"]
        await close(alice)
        await close(nobody)


async def test_a_listener_may_have_rules_of_its_own(folder: Path) -> None:
    own = {"listener.name.clients.ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1-by-certificate/"}
    home = Home(settings(folder) | own, listen=None)
    async with home.new_broker():
        alice, _ = await ask(home, of_client(folder, key=True))
        assert principals(home) == ["User:alice-by-certificate"]
        await close(alice)


async def test_a_name_that_no_rule_maps_is_refused(folder: Path) -> None:
    home = Home(settings(folder, ssl_principal_mapping_rules="RULE:^CN=bob$/bob/"), listen=None)
    async with home.new_broker():
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await ask(home, of_client(folder, key=True))
        writer, _ = await ask(home, of_client(folder))
        await close(writer)


@pytest.mark.parametrize("loop_name", ["asyncio", "uvloop"])
def test_one_suite_of_tls_1_3_may_be_all_that_is_spoken(folder: Path, loop_name: str) -> None:
    new_loop = pytest.importorskip("uvloop").new_event_loop if loop_name == "uvloop" else None

    async def suite_of_a_client() -> str:
        home = Home(settings(folder, ssl_cipher_suites="TLS_CHACHA20_POLY1305_SHA256"), listen=None)
        async with home.new_broker():
            client, answered = await ask(home, of_client(folder))
            assert answered == b"\0\0\0\1"
            suite: str = client.get_extra_info("cipher")[0]
            await close(client)
        return suite

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(suite_of_a_client()) == "TLS_CHACHA20_POLY1305_SHA256"


async def test_new_keys_in_the_file_count_from_the_next_connection_on(folder: Path) -> None:
    home = Home(settings(folder), listen=None)
    async with home.new_broker():
        first, _ = await ask(home, of_client(folder))
        before = first.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        (folder / "server.pem").write_text("no key")
        broken, _ = await ask(home, of_client(folder))
        assert broken.get_extra_info("ssl_object").getpeercert()["serialNumber"] == before
        (folder / "server.pem").write_text(server("localhost", "127.0.0.1", "another.example.org"))
        second, _ = await ask(home, of_client(folder))
        assert second.get_extra_info("ssl_object").getpeercert()["serialNumber"] != before
        for writer in (first, broken, second):
            await close(writer)


async def test_a_listener_gets_other_keys_by_incremental_alter_configs(folder: Path) -> None:
    (folder / "other.pem").write_text(server("localhost", "127.0.0.1"))
    home = Home(settings(folder), listen=None)
    async with home.new_broker() as broker:
        first, _ = await ask(home, of_client(folder))
        inside = broker.node.served_listeners.registered()["INSIDE"]
        async with await User.connect(f"{inside.host}:{inside.port}") as user:
            other = {"listener.name.clients.ssl.keystore.location": str(folder / "other.pem")}
            await user.alter_broker(broker.node_id, **other)
        second, _ = await ask(home, of_client(folder))
        serials = {w.get_extra_info("ssl_object").getpeercert()["serialNumber"] for w in (first, second)}
        assert len(serials) == 2
        await close(first)
        await close(second)


async def test_certificates_may_be_asked_for_at_once_and_whoever_is_connected_can_undo_it(
    folder: Path,
) -> None:
    """Apache Kafka goes on as before until its next start."""
    home = Home(settings(folder), listen=None)
    async with home.new_broker() as broker:
        inside = broker.node.served_listeners.registered()["INSIDE"]
        asks = "listener.name.clients.ssl.client.auth"
        async with await User.connect(f"{inside.host}:{inside.port}") as user:
            before, _ = await ask(home, of_client(folder))
            await user.alter_broker(broker.node_id, **{asks: "required"})
            with pytest.raises((ssl.SSLError, asyncio.IncompleteReadError, ConnectionError)):
                await ask(home, of_client(folder))
            alice, _ = await ask(home, of_client(folder, key=True))
            assert len(principals(home)) == 3
            await user.alter_broker(broker.node_id, **{asks: None})
            after, _ = await ask(home, of_client(folder))
        for writer in (before, alice, after):
            await close(writer)


REFUSED_STORES = {
    "a file that is missing": (None, {}, "cannot be read: No such file"),
    "another subject": (("127.0.0.1", "localhost"), {"unit": "others"}, "DistinguishedName does not match"),
    "fewer hosts": (("127.0.0.1",), {}, "SubjectAltNames do not match"),
}


@pytest.mark.parametrize(("hosts", "subject", "reason"), REFUSED_STORES.values(), ids=REFUSED_STORES)
async def test_keys_with_which_a_listener_could_not_serve_or_would_be_another_are_refused(
    folder: Path, hosts: tuple[str, ...] | None, subject: dict[str, str], reason: str
) -> None:
    """Source: CertificateEntries in Apache Kafka's SslFactory."""
    if hosts:
        (folder / "other.pem").write_text(server(*hosts, **subject))
    home = Home(settings(folder), listen=None)
    async with home.new_broker() as broker:
        inside = broker.node.served_listeners.registered()["INSIDE"]
        async with await User.connect(f"{inside.host}:{inside.port}") as user:
            refused = await altered(user, broker.node_id, str(folder / "other.pem"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message is not None
    assert reason in refused.error_message
    assert "Validation of dynamic config update of SSLFactory failed" in refused.error_message


@pytest.mark.parametrize(
    ("allowed", "hosts", "unit"),
    [
        ("ssl_allow_dn_changes", ("127.0.0.1", "localhost"), "others"),
        ("ssl_allow_san_changes", ("127.0.0.1",), "servers"),
    ],
)
async def test_a_listener_may_be_another_server_where_that_is_allowed(
    folder: Path, allowed: str, hosts: tuple[str, ...], unit: str
) -> None:
    """KIP-978."""
    (folder / "other.pem").write_text(server(*hosts, unit=unit))
    home = Home(settings(folder, **{allowed: "true"}), listen=None)
    async with home.new_broker() as broker:
        inside = broker.node.served_listeners.registered()["INSIDE"]
        async with await User.connect(f"{inside.host}:{inside.port}") as user:
            assert (await altered(user, broker.node_id, str(folder / "other.pem"))).error_code == 0


async def altered(
    user: User, node_id: int, location: str, listener: str = "clients"
) -> AlterConfigsResourceResponse:
    """The answer to the wish for another key store of a listener."""
    key = f"listener.name.{listener}.ssl.keystore.location"
    change = AlterableConfig(name=key, config_operation=0, value=location)
    resource = AlterConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=str(node_id), configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer: IncrementalAlterConfigsResponse = await user.send(request, 1)
    return answer.responses[0]


HOSTILE = {
    "plain Kafka": API_VERSIONS,
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "a record of no kind": bytes.fromhex("ff0301ffff") + bytes(64),
    "a hello that is none": bytes.fromhex("16030100050100000100"),
    "SSL 3": bytes.fromhex("1603000031010000 2d0300") + bytes(43),
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_handshake_costs_only_its_own_connection(folder: Path, sent: bytes) -> None:
    home = Home(settings(folder), listen=None)
    async with home.new_broker():
        healthy, _ = await ask(home, of_client(folder))
        reader, writer = await asyncio.open_connection(*address(home))
        writer.write(sent)
        # An alert at most, then the end.
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read()) < 32
        await close(writer)
        other, answered = await ask(home, of_client(folder))
        assert answered == b"\0\0\0\1"
        assert principals(home) == ["User:ANONYMOUS"] * 2
        await close(other)
        await close(healthy)


async def test_a_handshake_that_never_comes_holds_up_nobody(folder: Path) -> None:
    home = Home(settings(folder), listen=None)
    async with home.new_broker():
        with socket.create_connection(address(home)):
            writer, answered = await ask(home, of_client(folder))
            assert answered == b"\0\0\0\1"
            await close(writer)


async def test_keys_that_cannot_be_read_are_named_at_the_start(folder: Path) -> None:
    (folder / "server.pem").write_text("no key")
    home = Home(settings(folder), listen=None)
    with pytest.raises(ConfigError, match="Listener CLIENTS cannot serve TLS: Failed to load SSL keystore"):
        async with home.new_broker():
            pass


@pytest.fixture
def served(folder: Path) -> Iterator[tuple[Broker, dict[str, str]]]:
    overrides = settings(folder, listener_name_clients_ssl_client_auth="required")
    overrides["log.dirs"] = str(folder / "data")
    config = load_config(overrides=[f"{name}={value}" for name, value in overrides.items()])
    with Broker(config) as broker:
        yield (
            broker,
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SSL",
                "ssl.ca.location": str(folder / "ca.pem"),
                "ssl.certificate.location": str(folder / "alice.pem"),
                "ssl.key.location": str(folder / "alice.pem"),
            },
        )


def test_confluent_kafka_produces_and_consumes(served: tuple[Broker, dict[str, str]]) -> None:
    _, config = served
    values = [b"%d" % number * 1000 for number in range(2000)]
    producer = Producer(config)
    for value in values:
        producer.produce("orders", value, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({**config, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    read: list[bytes | None] = []
    while len(read) < len(values):
        read += [message.value() for message in consumer.consume(500, timeout=30)]
    consumer.close()
    assert read == values


def test_confluent_kafka_without_a_certificate_is_refused(served: tuple[Broker, dict[str, str]]) -> None:
    _, config = served
    without = {
        name: value for name, value in config.items() if ".key." not in name and "certificate" not in name
    }
    with pytest.raises(KafkaException):
        AdminClient({**without, "log_level": "0"}).list_topics(timeout=2)


def talk(where: str, context: ssl.SSLContext) -> bytes:
    """The first byte of the answer to a request, over a connection of its own."""
    host, _, port = where.rpartition(":")
    with (
        socket.create_connection((host, int(port)), 30) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        connection.sendall(API_VERSIONS)
        return connection.recv(1)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (ssl.TLSVersion.TLSv1_2, "SSLV3_ALERT_HANDSHAKE_FAILURE"),
        (ssl.TLSVersion.TLSv1_3, "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
    ],
)
def test_an_alert_tells_who_shows_no_certificate_why_it_is_refused(
    served: tuple[Broker, dict[str, str]], folder: Path, version: ssl.TLSVersion, reason: str
) -> None:
    context = of_client(folder)
    context.maximum_version = version
    with pytest.raises(ssl.SSLError) as refused:
        talk(served[0].bootstrap_servers, context)
    assert refused.value.reason == reason


def test_the_error_of_our_client_names_the_alert(served: tuple[Broker, dict[str, str]], folder: Path) -> None:
    where, tls = served[0].bootstrap_servers, of_client(folder)
    with pytest.raises(ConnectionError, match=f"^{where} ended TLS: tlsv13 alert certificate required$"):
        Client(where, identity=Identity(security=ClientSecurity(tls=lambda: tls))).connection()


async def test_an_alert_tells_who_shows_a_strange_certificate_why_it_is_refused(folder: Path) -> None:
    (folder / "alice.pem").write_text(pem(trustme.CA().issue_cert("a@example.org", common_name="alice")))
    home = Home(settings(folder), listen=None)
    async with home.new_broker() as broker:
        with pytest.raises(ssl.SSLError) as refused:
            await asyncio.to_thread(talk, broker.bootstrap_servers, of_client(folder, key=True))
    assert refused.value.reason == "TLSV1_ALERT_UNKNOWN_CA"


def test_confluent_kafka_logs_in_over_tls_without_a_certificate(folder: Path) -> None:
    overrides = settings(
        folder,
        listener_security_protocol_map="CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_clients_plain_sasl_jaas_config=(
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";'
        ),
        # Counts for SSL alone: SASL has said who the client is.
        ssl_client_auth="required",
    )
    del overrides["listener.name.clients.ssl.client.auth"]
    overrides["log.dirs"] = str(folder / "data")
    with Broker(load_config(overrides=[f"{name}={value}" for name, value in overrides.items()])) as broker:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "alice-secret",
                "ssl.ca.location": str(folder / "ca.pem"),
            }
        )
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
