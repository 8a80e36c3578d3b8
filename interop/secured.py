"""A secured node, or several, ours or Apache Kafka's, with a listener for each way into it (`ways.toml`): TLS
alone, a certificate of the client, and SASL over TLS with each mechanism.

Each way has a user of its own, who may do everything with topics, groups and transactional ids that have his
name in front, and nothing else. The nodes themselves and the administrator log in with PLAIN.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from interop.clients.login import JAAS, OAUTHBEARER, Login
from interop.several_nodes import SeveralNodes
from interop.world import Access, Entrance
from pykafka_broker.client.blocking import BlockingConnection, Client
from pykafka_broker.client.core.connection import ClientSecurity, Identity
from pykafka_broker.client.security import login_of, security_of
from pykafka_broker.protocol.messages import create_acls as acls
from pykafka_broker.protocol.messages import create_delegation_token as tokens
from pykafka_broker.protocol.messages import create_topics as topics
from pykafka_broker.protocol.messages import describe_delegation_token as describe_tokens
from pykafka_broker.protocol.messages import list_offsets as offsets
from pykafka_broker.protocol.messages import metadata as describing
from pykafka_broker.testing.apache.nodes import Node, Software, acl_count
from pykafka_broker.testing.issuer import AUDIENCE, Issuer, issuing
from pykafka_broker.testing.processes import free_port
from pykafka_broker.tls.authority import Authority

HOST = "127.0.0.1"
ADMIN, NODE = "admin", "node"
#: The mechanism of each way that has one. That of tokens is the user's who asks for it, too.
MECHANISMS = {
    "plain": "PLAIN",
    "scram-256": "SCRAM-SHA-256",
    "scram-512": "SCRAM-SHA-512",
    "oauthbearer": OAUTHBEARER,
    "token": "SCRAM-SHA-256",
}
WAYS = ("tls", "mtls", *MECHANISMS)
TOPIC, GROUP, TRANSACTIONAL_ID, LITERAL, PREFIXED, ALL, ALLOW = 2, 3, 5, 3, 4, 2, 3
#: The groups that clients name which cannot read without one.
READERS = {"not-a-group": LITERAL, "kafkajs-": PREFIXED, "platformatic-": PREFIXED}
LATEST = -1
_VALIDATOR = f"{JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler"


def user_of(way: str) -> str:
    """Who comes in this way; a client without a certificate is nobody in particular."""
    return "ANONYMOUS" if way == "tls" else "user_" + way.replace("-", "_")


def password_of(user: str) -> str:
    return f"{user}-secret"


@dataclass(frozen=True)
class Secured:
    """Nodes that run, and how they are reached in each way."""

    nodes: SeveralNodes
    entrances: Mapping[str, Entrance]
    #: Of the administrator, who may do everything.
    own: Entrance

    def access(self, way: str) -> Access:
        """That of a world whose clients come in this way."""
        return Access(self.entrances[way], self.own, f"{user_of(way)}-")

    def login(self, way: str) -> Login:
        """That of the user who comes in this way."""
        login = self.entrances[way].login
        assert login is not None
        return login

    def foreign(self, way: str) -> Login:
        """The login with a certificate for the same user that another authority has signed."""
        folder = Path(self.login(way).ca).parent
        return replace(self.login(way), certificate=str(folder / "foreign.pem"))

    def _administrator(self) -> Client:
        """A new client each time: brokers close connections that were idle for long."""
        assert self.own.login is not None
        return Client(self.own.address, identity=_identity(self.own.login))

    def end_of(self, topic: str) -> int:
        """The offset behind the last record of the topic's only partition."""
        latest = offsets.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        wanted = offsets.ListOffsetsTopic(name=topic, partitions=[latest])
        asked = offsets.ListOffsetsRequest(replica_id=-1, topics=[wanted])
        with self._administrator() as admin:
            answer = admin.send(asked, admin.leaders(topic)[0], 7)
        return int(answer.topics[0].partitions[0].offset)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic with a replica on each node, as the administrator; then all nodes know it."""
        wanted = topics.CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=self.nodes.count,
            assignments=[],
            configs=[],
        )
        with self._administrator() as admin:
            created = admin.send(topics.CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), version=7)
        assert not created.topics[0].error_code, created
        self.nodes.await_all(partial(_is_led, topic), f"not all nodes know {topic}")


@contextmanager
def secured(software: Software, count: int = 1) -> Iterator[Secured]:
    """So many nodes of this software, started, with their users, ACLs and topics."""
    users = {user_of(way): password_of(user_of(way)) for way in WAYS}
    with TemporaryDirectory(prefix="secured-") as folder, issuing(users) as issuer:
        path = Path(folder)
        _write_certificates(path)
        as_node = Identity(security=ClientSecurity(login=login_of(NODE, NODE, "PLAIN")))
        nodes = SeveralNodes(software, count, {}, path, identity=as_node)
        of_each: list[dict[str, str]] = []
        for node in nodes.nodes:
            of_each.append({name: f"{HOST}:{free_port()}" for name in (*WAYS, "admin")})
            _secure(node, path, of_each[-1], issuer)
        addresses = {name: ",".join(of_one[name] for of_one in of_each) for name in (*WAYS, "admin")}
        with nodes:
            logins = {way: _login(way, path, issuer) for way in WAYS}
            administrator = Login(
                logins["tls"].ca, mechanism="PLAIN", user=ADMIN, password=password_of(ADMIN)
            )
            with (
                Client(addresses["admin"], identity=_identity(administrator)) as admin,
                Client(addresses["token"], identity=_identity(logins["token"])) as owner,
            ):
                _create_acls(admin, nodes)
                asked = tokens.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
                made = owner.send(asked, version=3)
                assert not made.error_code, made
                nodes.await_all(_has_a_token, "not all nodes have the token")
                logins["token"] = _with_token(logins["token"], made)
            entrances = {way: Entrance(addresses[way], logins[way]) for way in WAYS}
            yield Secured(nodes, entrances, Entrance(addresses["admin"], administrator))


def _write_certificates(path: Path) -> None:
    authority = Authority.new(datetime.now(UTC), days=1)
    (path / "ca.pem").write_bytes(authority.own.certificate_pem)
    for name, issued in (
        ("server.pem", authority.for_server([HOST, "localhost"])),
        ("client.pem", authority.for_client(user_of("mtls"))),
        ("foreign.pem", Authority.new(datetime.now(UTC), days=1).for_client(user_of("mtls"))),
    ):
        (path / name).write_bytes(issued.key_pem + issued.certificate_pem)


def _secure(node: Node, path: Path, ports: Mapping[str, str], issuer: Issuer) -> None:
    """Set what a node needs before its first start."""
    listener = {way: way.upper().replace("-", "") for way in WAYS}
    protocols = {listener[way]: "SASL_SSL" if way in MECHANISMS else "SSL" for way in WAYS}
    protocols |= {"ADMIN": "SASL_SSL", "NODES": "SASL_PLAINTEXT", "CONTROLLER": "SASL_PLAINTEXT"}
    scrams = [
        text
        for way in ("scram-256", "scram-512", "token")
        for text in (
            "--add-scram",
            f"{MECHANISMS[way]}=[name={user_of(way)},password={password_of(user_of(way))}]",
        )
    ]
    node.format_options = (*node.format_options, *scrams)
    addresses = {listener[way]: ports[way] for way in WAYS}
    addresses |= {"ADMIN": ports["admin"], "NODES": node.address, "CONTROLLER": node.controller_address}
    node.properties |= {
        "listeners": ",".join(f"{name}://{address}" for name, address in addresses.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{to}" for name, to in protocols.items()),
        "inter.broker.listener.name": "NODES",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(path / "ca.pem"),
        f"listener.name.{listener['mtls'].lower()}.ssl.client.auth": "required",
        f"listener.name.{listener['mtls'].lower()}.ssl.principal.mapping.rules": (
            "RULE:^CN=([^,]+)$/$1/, DEFAULT"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{NODE};User:{ADMIN}",
        "delegation.token.secret.key": "interop",
        "auto.create.topics.enable": "false",
    }
    plain = f"{JAAS}.plain.PlainLoginModule required"
    own = f'username="{NODE}" password="{NODE}" user_{NODE}="{NODE}"'
    user = user_of("plain")
    node.properties |= {
        "listener.name.nodes.plain.sasl.jaas.config": f"{plain} {own};",
        "listener.name.controller.plain.sasl.jaas.config": f"{plain} {own};",
        "listener.name.admin.plain.sasl.jaas.config": f'{plain} user_{ADMIN}="{password_of(ADMIN)}";',
        "listener.name.plain.plain.sasl.jaas.config": f'{plain} user_{user}="{password_of(user)}";',
    }
    for way, mechanism in MECHANISMS.items():
        prefix = f"listener.name.{listener[way].lower()}"
        node.properties[f"{prefix}.sasl.enabled.mechanisms"] = mechanism
        if mechanism.startswith("SCRAM"):
            login = f"{JAAS}.scram.ScramLoginModule required;"
            node.properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = login
    bearer = "listener.name.oauthbearer.oauthbearer.sasl"
    node.properties |= {
        f"{bearer}.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required;",
        f"{bearer}.server.callback.handler.class": _VALIDATOR,
        f"{bearer}.oauthbearer.jwks.endpoint.url": issuer.key_set,
        f"{bearer}.oauthbearer.expected.audience": AUDIENCE,
        f"{bearer}.oauthbearer.expected.issuer": issuer.url,
    }
    node.jvm_options = (
        *node.jvm_options,
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.key_set}",
    )


def _login(way: str, path: Path, issuer: Issuer) -> Login:
    user = user_of(way)
    return Login(
        ca=str(path / "ca.pem"),
        certificate=str(path / "client.pem") if way == "mtls" else "",
        mechanism=MECHANISMS.get(way, ""),
        user=user,
        password=password_of(user),
        token_endpoint=issuer.token_endpoint if way == "oauthbearer" else "",
    )


def _with_token(login: Login, made: tokens.CreateDelegationTokenResponse) -> Login:
    """The login with the token in the place of its owner's password."""
    return Login(
        login.ca,
        mechanism=login.mechanism,
        user=made.token_id,
        password=b64encode(made.hmac).decode(),
        is_token=True,
    )


def _identity(login: Login) -> Identity:
    return Identity(security=security_of(login.for_java()))


def _is_led(topic: str, connection: BlockingConnection) -> bool:
    asked = describing.MetadataRequest(
        topics=[describing.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    [described] = connection.send(asked).topics
    return not described.error_code and not any(each.error_code for each in described.partitions)


def _has_a_token(connection: BlockingConnection) -> bool:
    return bool(connection.send(describe_tokens.DescribeDelegationTokenRequest(owners=None)).tokens)


def _has_acls(count: int, connection: BlockingConnection) -> bool:
    return acl_count(connection) == count


def _create_acls(admin: Client, nodes: SeveralNodes) -> None:
    """Those of all users, which all nodes then have."""
    creations = [
        acls.AclCreation(
            resource_type=kind,
            resource_name=f"{user_of(way)}-",
            resource_pattern_type=PREFIXED,
            principal=f"User:{user_of(way)}",
            host="*",
            operation=ALL,
            permission_type=ALLOW,
        )
        for way in WAYS
        for kind in (TOPIC, GROUP, TRANSACTIONAL_ID)
    ]
    creations += [
        acls.AclCreation(
            resource_type=GROUP,
            resource_name=name,
            resource_pattern_type=pattern,
            principal="User:*",
            host="*",
            operation=ALL,
            permission_type=ALLOW,
        )
        for name, pattern in READERS.items()
    ]
    answer = admin.send(acls.CreateAclsRequest(creations=creations), version=3)
    assert not any(result.error_code for result in answer.results), answer
    nodes.await_all(partial(_has_acls, len(creations)), "not all nodes have the ACLs")
