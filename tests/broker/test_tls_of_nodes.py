"""Nodes that connect to each other with TLS, on the listeners of brokers and of controllers."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from pykafka_broker.broker.security.links import security_with_brokers, security_with_controllers
from pykafka_broker.config import ConfigError, DynamicConfig
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.errors import ErrorCode
from tests.broker.test_sasl_of_nodes import WITH_PLAIN, replicated
from tests.broker.test_tls_listener import altered, pem
from tests.support.clusters import Cluster
from tests.support.sasl import authenticate, principals

AUTHORITY = trustme.CA()


def issued(name: str) -> trustme.LeafCert:
    return AUTHORITY.issue_cert("localhost", "127.0.0.1", common_name=name, organization_unit_name="nodes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "node.pem").write_text(pem(issued("node")))
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path


def keys(folder: Path) -> dict[str, str]:
    """Both listeners speak TLS and ask for a certificate of the authority."""
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }


def context(folder: Path) -> ssl.SSLContext:
    """Of a client that shows the certificate of the nodes."""
    made = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    made.load_cert_chain(str(folder / "node.pem"))
    return made


async def test_nodes_show_each_other_their_certificates(folder: Path) -> None:
    acls = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:node"}
    mapping = {"ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/"}
    cluster = Cluster(3, overrides={**keys(folder), **acls, **mapping})
    async with cluster.running(), cluster.user_of(1, context(folder)) as user:
        await replicated(cluster, user, "orders")
        for home in cluster.homes.values():
            assert set(principals(home)) == {"User:node"}


async def test_nodes_authenticate_with_passwords_over_tls(folder: Path) -> None:
    both = {**keys(folder), **WITH_PLAIN}
    both["listener.security.protocol.map"] = "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL"
    cluster = Cluster(3, overrides=both)
    async with cluster.running(), cluster.user_of(1, context(folder)) as user:
        await authenticate(user)
        await replicated(cluster, user, "orders")
        for home in cluster.homes.values():
            assert {"User:node"} <= set(principals(home)) <= {"User:node", "User:alice"}


@pytest.mark.parametrize(("algorithm", "compares_names"), [("https", True), ("", False)])
def test_the_names_in_the_certificates_of_nodes_are_compared_unless_switched_off(
    folder: Path, algorithm: str, compares_names: bool
) -> None:
    settings = keys(folder) | {"ssl.endpoint.identification.algorithm": algorithm}
    config = Cluster(1, overrides=settings).homes[1].config()
    for security in (security_with_brokers(lambda: config), security_with_controllers(lambda: config)):
        assert security is not None and security.tls is not None
        assert security.tls().check_hostname is compares_names


async def test_the_next_connection_shows_a_certificate_that_has_replaced_the_last(folder: Path) -> None:
    config = Cluster(1, overrides=keys(folder)).homes[1].config()
    security = security_with_brokers(lambda: config)
    assert security is not None and security.tls is not None
    before = security.tls()
    assert security.tls() is before
    (folder / "node.pem").write_text(pem(issued("node")))
    renewed = security.tls()
    assert renewed is not before
    (folder / "node.pem").write_text(pem(issued("another")))
    assert security.tls() is renewed


def test_the_next_connection_shows_a_certificate_that_the_listener_got_by_alter_configs(folder: Path) -> None:
    (folder / "next.pem").write_text(pem(issued("node")))
    configs = DynamicConfig(Cluster(1, overrides=keys(folder)).homes[1].config())
    security = security_with_brokers(lambda: configs.current)
    assert security is not None and security.tls is not None
    before = security.tls()
    configs.update({}, {"listener.name.plaintext.ssl.keystore.location": str(folder / "next.pem")})
    assert security.tls() is not before


async def test_a_key_with_which_brokers_could_not_connect_to_each_other_is_refused(folder: Path) -> None:
    """Source: SslEngineValidator in Apache Kafka's SslFactory."""
    stranger = trustme.CA().issue_cert(
        "localhost", "127.0.0.1", common_name="node", organization_unit_name="nodes"
    )
    (folder / "strange.pem").write_text(pem(stranger))
    cluster = Cluster(1, overrides=keys(folder))
    async with cluster.running(), cluster.user_of(1, context(folder)) as user:
        refused = await altered(user, 1, str(folder / "strange.pem"), "plaintext")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "can't connect to a server SSLEngine" in (refused.error_message or "")


def test_a_node_whose_key_its_own_trust_store_does_not_know_does_not_start(folder: Path) -> None:
    trustme.CA().cert_pem.write_to_path(str(folder / "ca.pem"))
    cluster = Cluster(1, overrides=keys(folder))
    with pytest.raises(ConfigError, match=r"PLAINTEXT cannot serve TLS: A client SSLEngine .* verify failed"):
        asyncio.run(started(cluster))


async def started(cluster: Cluster) -> None:
    async with cluster.running():
        pass
