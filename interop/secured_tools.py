"""Apache Kafka's command-line tools against a node that asks for TLS and a password, and where ACLs count,
or against several.

They are secured as docs/security.md says: clients log in over SASL_SSL with SCRAM, nodes with PLAIN. A check
is a function of what is secured; the lane `tools` runs all of them on it, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from interop.checks import tried
from interop.several_nodes import SeveralNodes
from pykafka_broker.client.core.connection import ClientSecurity, Identity
from pykafka_broker.client.security import login_of
from pykafka_broker.testing.apache.nodes import Node, Software
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.processes import free_port
from pykafka_broker.tls.authority import Authority

ADMIN = "admin"
MODULES = "org.apache.kafka.common.security"
PROTOCOLS = {"NODES": "SASL_PLAINTEXT", "CLIENTS": "SASL_SSL", "CONTROLLER": "SASL_PLAINTEXT"}
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "AclCommand"
TOKENS = "DelegationTokenCommand"
_NODE_LOGIN = f'{MODULES}.plain.PlainLoginModule required username="node" password="node" user_node="node";'


@dataclass(frozen=True)
class User:
    """A user, or a token, and the file of its client properties."""

    name: str
    properties: str

    @property
    def principal(self) -> str:
        return f"User:{self.name}"


@dataclass(frozen=True)
class Secured:
    """Nodes that run; `address` has those of their listeners for clients."""

    nodes: SeveralNodes
    address: str
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def name(self, purpose: str) -> str:
        return f"{purpose}-{next(self._names)}"

    def properties(
        self, user: str, password: str = "", *, mechanism: str = "SCRAM-SHA-512", more: str = ""
    ) -> str:
        """The file of client properties of a user, whose password is `<user>-secret` if none is given."""
        path = self.nodes.folder / f"{self.name(user[:20])}.properties"
        login = f'username="{user}" password="{password or user + "-secret"}"{more}'
        path.write_text(
            "security.protocol=SASL_SSL\n"
            f"sasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={MODULES}.scram.ScramLoginModule required {login};\n"
            "ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={self.nodes.folder / 'ca.pem'}\n"
        )
        return str(path)

    def tool(
        self, name: str, *arguments: str, properties: str = "", stdin: str = "", expect_failure: bool = False
    ) -> str:
        """What a tool prints, run by the owner of `properties`, the admin if there are none."""
        main_class = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
        return run_tool(
            main_class,
            *("--bootstrap-server", self.address, "--command-config", properties or self.properties(ADMIN)),
            *arguments,
            stdin=stdin,
            expect_failure=expect_failure,
        )

    def user(self, purpose: str) -> User:
        """A new user, whose password is `<user>-secret`."""
        name = self.name(purpose)
        secret = f"SCRAM-SHA-512=[password={name}-secret]"
        self.tool(CONFIGS, "--entity-type", "users", "--entity-name", name, "--alter", "--add-config", secret)
        return User(name, self.properties(name))

    def produce(self, topic: str, lines: str, user: User) -> str:
        """What the console producer prints: nothing, or what it could not do."""
        return self.tool("ConsoleProducer", "--topic", topic, properties=user.properties, stdin=lines)

    def consume(self, topic: str, group: str, count: int, user: User) -> str:
        """What the console consumer prints of so many records: their values, or what it could not do."""
        return self.tool(
            "consumer.ConsoleConsumer",
            *("--topic", topic, "--group", group, "--from-beginning"),
            *("--max-messages", str(count), "--timeout-ms", "20000"),
            properties=user.properties,
        )

    def topics_seen_by(self, user: User) -> set[str]:
        """The topics that kafka-topics lists for a user."""
        return set(self.tool("TopicCommand", "--list", properties=user.properties).split())

    def refusal(self, user: User) -> str:
        """What kafka-topics prints for a user whom the node does not let in."""
        return self.tool("TopicCommand", "--list", properties=user.properties, expect_failure=True)


@contextmanager
def secured(software: Software, count: int = 1) -> Iterator[Secured]:
    """So many nodes of this software, started."""
    with TemporaryDirectory(prefix="secured-") as folder:
        path = Path(folder)
        authority = Authority.new(datetime.now(UTC), days=1)
        issued = authority.for_server(["127.0.0.1"])
        (path / "ca.pem").write_bytes(authority.own.certificate_pem)
        (path / "server.pem").write_bytes(issued.key_pem + issued.certificate_pem)
        as_node = Identity(security=ClientSecurity(login=login_of("node", "node", "PLAIN")))
        nodes = SeveralNodes(software, count, {}, path, identity=as_node)
        addresses = {node.node_id: f"127.0.0.1:{free_port()}" for node in nodes.nodes}
        for node in nodes.nodes:
            _secure(node, addresses[node.node_id], path)
        with nodes:
            yield Secured(nodes, ",".join(addresses.values()))


def _secure(node: Node, address: str, path: Path) -> None:
    """Set what a node needs before its first start; clients come to `address`."""
    admin = f"SCRAM-SHA-512=[name={ADMIN},password={ADMIN}-secret]"
    node.format_options = (*node.format_options, "--add-scram", admin)
    node.properties |= {
        "listeners": f"NODES://{node.address},CLIENTS://{address},CONTROLLER://{node.controller_address}",
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()
        ),
        "inter.broker.listener.name": "NODES",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.nodes.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.nodes.plain.sasl.jaas.config": _NODE_LOGIN,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": _NODE_LOGIN,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path / "server.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:node;User:{ADMIN}",
        "delegation.token.secret.key": "interop",
    }
    for mechanism in ("scram-sha-256", "scram-sha-512"):
        login = f"{MODULES}.scram.ScramLoginModule required;"
        node.properties[f"listener.name.clients.{mechanism}.sasl.jaas.config"] = login


def acls(printed: str) -> dict[str, set[str]]:
    """The ACLs of each resource (`TOPIC orders LITERAL`) in what kafka-acls prints, in no order."""
    found: dict[str, set[str]] = {}
    for block in re.split(r"(?=ResourcePattern\()", printed)[1:]:
        kind, name, pattern = re.findall(r"(?:resourceType|name|patternType)=([^,)]+)", block)[:3]
        entries = re.findall(r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)", block)
        found[f"{kind} {name} {pattern}"] = {" ".join(entry) for entry in entries}
    return found


def users_have_scram_credentials(secured: Secured) -> None:
    """The user that is made can log in, and not with another password, and not any more when it is gone."""
    user = secured.name("alice")
    of_user = ("--entity-type", "users", "--entity-name", user)

    def changed(*change: str, expect_failure: bool = False) -> str:
        return secured.tool(CONFIGS, *of_user, "--alter", *change, expect_failure=expect_failure).strip()

    def described() -> str:
        return secured.tool(CONFIGS, *of_user, "--describe").strip()

    told = f"Completed updating config for user {user}."
    assert changed("--add-config", f"SCRAM-SHA-512=[iterations=8192,password={user}-secret]") == told
    assert changed("--add-config", "SCRAM-SHA-256=[password=another]") == told
    credentials = f"SCRAM credential configs for user-principal '{user}' are "
    assert described() == credentials + "SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=8192"
    assert secured.topics_seen_by(User(user, secured.properties(user))) == set()
    by_sha_256 = User(user, secured.properties(user, "another", mechanism="SCRAM-SHA-256"))
    assert secured.topics_seen_by(by_sha_256) == set()
    assert "invalid credentials" in secured.refusal(User(user, secured.properties(user, "wrong")))
    assert changed("--delete-config", "SCRAM-SHA-256") == told
    assert described() == credentials + "SCRAM-SHA-512=iterations=8192"
    gone = changed("--delete-config", "SCRAM-SHA-256", expect_failure=True)
    assert "Attempt to delete a user credential that does not exist" in gone, gone
    twice = "SCRAM-SHA-256=[password=a],SCRAM-SHA-512=[password=a]"
    refused = changed("--add-config", twice, expect_failure=True)
    assert "A user credential cannot be altered twice in the same request" in refused, refused
    assert changed("--delete-config", "SCRAM-SHA-512") == told
    assert described() == ""
    assert "invalid credentials" in secured.refusal(User(user, secured.properties(user)))
    everybody = secured.tool(CONFIGS, "--entity-type", "users", "--describe")
    assert f"user-principal '{ADMIN}' are SCRAM-SHA-512=iterations=4096\n" in everybody, everybody
    assert user not in everybody, everybody


def users_do_what_acls_say(secured: Secured) -> None:
    """A producer and a consumer of a topic, before there are ACLs, with them, and when some are removed."""
    topic, group = secured.name("orders"), secured.name("billing")
    writer, reader = secured.user("writer"), secured.user("reader")
    created = ("TopicCommand", "--create", "--topic", topic)
    assert "Authorization failed" in secured.tool(*created, properties=writer.properties, expect_failure=True)
    secured.tool(*created)
    assert "TopicAuthorizationException" in secured.produce(topic, "refused", writer)

    beginning = ("--topic", topic[:-1], "--group", group[:-1], "--resource-pattern-type", "prefixed")
    for_writer = ("--allow-principal", writer.principal, "--producer", "--topic", topic)
    for_reader = ("--allow-principal", reader.principal, "--consumer", *beginning)
    against_reader = ("--deny-principal", reader.principal, "--deny-host", "127.0.0.1", "--operation", "Read")
    literal, prefixed = f"TOPIC {topic} LITERAL", f"TOPIC {topic[:-1]} PREFIXED"
    of_writer = {literal: {f"{writer.principal} * {may} ALLOW" for may in ("CREATE", "DESCRIBE", "WRITE")}}
    of_reader = {
        prefixed: {f"{reader.principal} * {may} ALLOW" for may in ("DESCRIBE", "READ")},
        f"GROUP {group[:-1]} PREFIXED": {f"{reader.principal} * READ ALLOW"},
    }
    denial = {literal: {f"{reader.principal} 127.0.0.1 READ DENY"}}

    assert acls(secured.tool(ACLS, "--add", *for_writer)) == of_writer
    assert "already exists" in secured.tool(ACLS, "--add", *for_writer)
    assert acls(secured.tool(ACLS, "--add", *for_reader)) == of_reader
    assert secured.produce(topic, "one\ntwo\n", writer) == ""
    assert secured.consume(topic, group, 2, reader).splitlines() == ["one", "two"]
    # An idempotent producer asks for a producer id, which only those get who may write somewhere.
    assert "ClusterAuthorizationException" in secured.produce(topic, "refused", reader)
    assert "GroupAuthorizationException" in secured.consume(topic, group, 1, writer)
    assert secured.topics_seen_by(reader) == secured.topics_seen_by(writer) == {topic}

    assert acls(secured.tool(ACLS, "--add", *against_reader, "--topic", topic)) == denial
    assert "TopicAuthorizationException" in secured.consume(topic, secured.name(group), 1, reader)
    listed = acls(secured.tool(ACLS, "--list", "--topic", topic, "--resource-pattern-type", "match"))
    assert listed == {literal: of_writer[literal] | denial[literal], prefixed: of_reader[prefixed]}
    assert acls(secured.tool(ACLS, "--list", "--principal", reader.principal)) == of_reader | denial
    refused = secured.tool(ACLS, "--list", properties=reader.properties, expect_failure=True)
    assert "ClusterAuthorizationException" in refused, refused

    secured.tool(ACLS, "--remove", "--force", *against_reader, "--topic", topic)
    assert secured.consume(topic, secured.name(group), 2, reader).splitlines() == ["one", "two"]
    secured.tool(ACLS, "--remove", "--force", *for_reader)
    assert "TopicAuthorizationException" in secured.consume(topic, group, 1, reader)
    secured.tool(ACLS, "--remove", "--force", "--topic", topic)
    assert "TopicAuthorizationException" in secured.produce(topic, "refused", writer)
    assert not {literal, *of_reader} & {*acls(secured.tool(ACLS, "--list"))}


def quotas_are_set_described_and_removed(secured: Secured) -> None:
    """Of users, clients, both, addresses and their defaults, each described alone."""
    user, client, ip = secured.name("dave"), secured.name("app"), "127.0.0.9"
    removed = "producer_byte_rate", "request_percentage"
    left = "consumer_byte_rate=2097152.0, controller_mutation_rate=5.5"
    rates = f"{removed[0]}=1048576.0, {left}, {removed[1]}=50.0"
    connections = "connection_creation_rate=10.0"
    entities = {
        ("--user", user): (f"user-principal '{user}'", rates),
        ("--user-defaults",): ("the default user-principal", rates),
        ("--client", client): (f"client-id '{client}'", rates),
        ("--client-defaults",): ("the default client-id", rates),
        ("--user", user, "--client", client): (f"user-principal '{user}', client-id '{client}'", rates),
        ("--user", user, "--client-defaults"): (f"user-principal '{user}', the default client-id", rates),
        ("--user-defaults", "--client-defaults"): (
            "the default user-principal, the default client-id",
            rates,
        ),
        ("--ip", ip): (f"ip '{ip}'", connections),
        ("--ip-defaults",): ("the default ip", connections),
    }

    def described(*entity: str) -> list[str]:
        return secured.tool(CONFIGS, *entity, "--describe").splitlines()

    for entity, (_, quotas) in entities.items():
        secured.tool(CONFIGS, *entity, "--alter", "--add-config", quotas.replace(" ", ""))
    told = {entity: f"Quota configs for {name} are {quotas}" for entity, (name, quotas) in entities.items()}
    for entity, line in told.items():
        assert described(*entity) == [line], entity
    ips = described("--entity-type", "ips")
    assert sorted(ips) == sorted([told["--ip", ip], told["--ip-defaults",]]), ips
    both = described("--entity-type", "users", "--entity-type", "clients")
    assert sorted(both) == sorted(
        line for line in told.values() if ", client-id" in line or ", the default" in line
    ), both
    secured.tool(CONFIGS, "--user", user, "--alter", "--delete-config", ",".join(removed))
    assert described("--user", user) == [f"Quota configs for user-principal '{user}' are {left}"]
    entities["--user", user] = (f"user-principal '{user}'", left)
    wrong = secured.tool(
        CONFIGS, "--user", user, "--alter", "--add-config", "producer_rate=1", expect_failure=True
    )
    assert "producer_rate" in wrong, wrong
    nobody = secured.user("nobody")
    refused = secured.tool(
        CONFIGS, "--user", user, "--describe", properties=nobody.properties, expect_failure=True
    )
    assert "ClusterAuthorizationException" in refused, refused
    for entity, (_, quotas) in entities.items():
        names = ",".join(quota.partition("=")[0] for quota in quotas.split(", "))
        secured.tool(CONFIGS, *entity, "--alter", "--delete-config", names)
    assert described("--entity-type", "clients") == described("--entity-type", "ips") == []


def tokens_are_created_renewed_described_and_expired(secured: Secured) -> None:
    """A token opens what its owner may do, and neither another token nor anything after its end."""
    topic = secured.name("tokens")
    owner, renewer = secured.user("owner"), secured.user("renewer")
    secured.tool("TopicCommand", "--create", "--topic", topic)
    secured.tool(ACLS, "--add", "--allow-principal", owner.principal, "--producer", "--topic", topic)

    def tokens(*arguments: str, of: User, expect_failure: bool = False) -> str:
        return secured.tool(TOKENS, *arguments, properties=of.properties, expect_failure=expect_failure)

    asked = ("--create", "--max-life-time-period", "3600000", "--renewer-principal", renewer.principal)
    created = tokens(*asked, of=owner)
    [row] = rows(created)
    token_id, hmac = row[:2]
    assert row[2:5] == [owner.principal, owner.principal, f"[{renewer.principal}]"], created
    stranger = secured.user("stranger")

    def shown(to: User) -> list[list[str]]:
        # Without an owner the tool asks for the tokens of nobody.
        return rows(tokens("--describe", "--owner-principal", owner.principal, of=to))

    assert shown(owner) == shown(renewer) == [row]
    assert shown(stranger) == []

    with_token = User(
        token_id, secured.properties(token_id, hmac, mechanism="SCRAM-SHA-256", more=' tokenauth="true"')
    )
    assert secured.produce(topic, "with a token\n", with_token) == ""
    another = tokens("--create", "--max-life-time-period", "-1", of=with_token, expect_failure=True)
    assert "UnsupportedByAuthenticationException" in another, another

    renewed = tokens("--renew", "--renew-time-period", "60000", "--hmac", hmac, of=renewer)
    assert "Completed renew operation. New expiry date" in renewed, renewed
    refused = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac, of=stranger, expect_failure=True)
    assert "DelegationToken" in refused, refused
    expired = tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac, of=owner)
    assert "Completed expire operation." in expired, expired
    again = tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac, of=owner, expect_failure=True)
    assert "DelegationTokenNotFoundException" in again, again
    assert shown(owner) == []
    assert "invalid credentials" in secured.refusal(with_token)


def tokens_are_made_for_others_where_an_acl_says_so(secured: Secured) -> None:
    maker, owner = secured.user("maker"), secured.user("owner")
    asked = ("--create", "--max-life-time-period", "-1", "--owner-principal", owner.principal)
    refused = secured.tool(TOKENS, *asked, properties=maker.properties, expect_failure=True)
    assert "DelegationTokenAuthorizationException" in refused, refused
    allowed = ("--allow-principal", maker.principal, "--user-principal", owner.principal)
    operations = ("--operation", "CreateTokens", "--operation", "DescribeTokens")
    added = acls(secured.tool(ACLS, "--add", *allowed, *operations))
    assert added == {
        f"USER {owner.principal} LITERAL": {
            f"{maker.principal} * {operation} ALLOW" for operation in ("CREATE_TOKENS", "DESCRIBE_TOKENS")
        }
    }, added
    [row] = rows(secured.tool(TOKENS, *asked, properties=maker.properties))
    assert row[2:4] == [owner.principal, maker.principal], row
    of_owner = ("--describe", "--owner-principal", owner.principal)
    [seen] = rows(secured.tool(TOKENS, *of_owner, properties=maker.properties))
    assert seen[:4] == row[:4], seen


def rows(printed: str) -> list[list[str]]:
    """The tokens in what kafka-delegation-tokens prints, below its line of columns."""
    lines = [line.split() for line in printed.splitlines()]
    columns = next(index for index, line in enumerate(lines) if line[:2] == ["TOKENID", "HMAC"])
    return [line for line in lines[columns + 1 :] if line]


#: In the order of the lane.
CHECKS: tuple[Callable[[Secured], None], ...] = (
    users_have_scram_credentials,
    users_do_what_acls_say,
    quotas_are_set_described_and_removed,
    tokens_are_created_renewed_described_and_expired,
    tokens_are_made_for_others_where_an_acl_says_so,
)


def run(software: Software, report: Callable[[str], None], nodes: int = 1) -> list[str]:
    """Run the checks on so many nodes; what failed."""
    with secured(software, nodes) as running:
        return [
            failure
            for check in CHECKS
            for failure in tried(
                f"{check.__name__.replace('_', ' ')} (secured)", partial(check, running), report
            )
        ]
