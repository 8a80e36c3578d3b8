"""A secured node goes from Apache Kafka 4.3.1 to our broker and back, and once more by kill -9.

Its folder and its server.properties stay as they are: TLS and SCRAM for clients, certificates for nodes, ACLs
and delegation tokens. Each broker adds users of both mechanisms, ACLs, client quotas and a token. The next
broker lists all of them, lets everyone in, and allows each what it was allowed before and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages import alter_client_quotas as quotas
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka_broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from pykafka_broker.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from pykafka_broker.sasl.delegation_tokens import token_password
from pykafka_broker.testing.apache.nodes import EVERY_ACL, Node, Nodes, Software
from tests.exchange.test_exchange import metadata_snapshots
from tests.support.scram import SHA_256, SHA_512, altering, put
from tests.torture.clients import TOPIC
from tests.torture.secured_users import LOGIN_MODULE, STRANGER
from tests.torture.security import Security
from tests.torture.stranger import read, written

PROPERTIES = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{LOGIN_MODULE} required;",
    "delegation.token.secret.key": "the key of tokens",
    # The next broker reads a snapshot, and not only the log.
    "metadata.log.max.record.bytes.between.snapshots": "500",
}
#: The next brokers, and whether the one before is killed.
LIVES: tuple[tuple[Software, bool], ...] = (
    ("ours", False),
    ("apache", False),
    ("ours", True),
    ("apache", True),
)
#: The error of a read, that of a write, and whether the write was throttled.
Powers = tuple[ErrorCode, ErrorCode, bool]
OF_WRITER: Powers = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE, True)
OF_READER: Powers = (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)
OF_STRANGER: Powers = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)


class Guests(NamedTuple):
    """Users whom one broker has made: the writer has SCRAM-SHA-256, the reader SCRAM-SHA-512."""

    writer: str
    reader: str
    #: The writer's.
    token: CreateDelegationTokenResponse


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("kafka_jars")
def test_a_secured_folder_of_apache_kafka_lets_the_same_users_in_here_and_when_it_goes_back(
    tmp_path: Path,
) -> None:
    nodes = Nodes(tmp_path, {1: "apache"}, dynamic=True, roles="broker,controller")
    security, node = Security(tmp_path, (1,)), nodes[1]
    security.secure(node)
    node.properties |= PROPERTIES
    with nodes:
        create_topic(security, node)
        guests = [invite(nodes, security, 0)]
        await_powers(nodes, security, guests)
        for number, (software, is_killed) in enumerate(LIVES, 1):
            before = listed(security, node)
            nodes.comes(lambda: metadata_snapshots(node.data_dir), "there is no snapshot")
            if is_killed:
                node.kill()
            else:
                node.stop()
            node.software = software
            node.start()
            assert listed(security, node) == before, f"listed by {software}"
            await_powers(nodes, security, guests)
            guests.append(invite(nodes, security, number))
            await_powers(nodes, security, guests)


def create_topic(security: Security, node: Node) -> None:
    wanted = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    with closing(security.super_user(node)) as connection:
        answer = connection.send(CreateTopicsRequest(topics=[wanted]))
    assert_done(answer.topics)


def invite(nodes: Nodes, security: Security, number: int) -> Guests:
    """Make two users, what each may do and how much, and a token of the first."""
    node = nodes[1]
    writer, reader = f"writer-{number}", f"reader-{number}"
    acls = [
        acl(writer, TOPIC, PatternType.LITERAL, AclOperation.WRITE),
        acl(reader, TOPIC[:3], PatternType.PREFIXED, AclOperation.ALL),
        acl(reader, TOPIC, PatternType.LITERAL, AclOperation.WRITE, AclPermission.DENY),
    ]
    limits = [
        quota("producer_byte_rate", 1.0, user=writer),
        quota("consumer_byte_rate", 1e9, user=reader, client_id=None),
        quota("connection_creation_rate", 9.0, ip=f"192.0.2.{number}"),
    ]
    with closing(security.super_user(node)) as connection:
        assert_done(connection.send(altering(put(writer, SHA_256), put(reader, SHA_512))).results)
        assert_done(connection.send(CreateAclsRequest(creations=acls)).results)
        changes = quotas.AlterClientQuotasRequest(entries=limits, validate_only=False)
        assert_done(connection.send(changes).entries)
    nodes.comes(
        lambda: powers(security, node, writer, password_of(writer), "SCRAM-SHA-256") == OF_WRITER,
        f"{writer} may not write, or is not throttled",
    )
    renewer = CreatableRenewers(principal_type="User", principal_name=reader)
    asked = CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)
    with closing(security.login(node.address, writer, password_of(writer), "SCRAM-SHA-256")) as connection:
        token: CreateDelegationTokenResponse = connection.send(asked)
    assert_done([token])
    return Guests(writer, reader, token)


def acl(
    user: str,
    topic: str,
    pattern: PatternType,
    operation: AclOperation,
    permission: AclPermission = AclPermission.ALLOW,
) -> AclCreation:
    return AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=topic,
        resource_pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=permission,
    )


def quota(key: str, value: float, **entity: str | None) -> quotas.AlterClientQuotasRequestEntryData:
    """A quota of an entity; None stands for the default."""
    return quotas.AlterClientQuotasRequestEntryData(
        entity=[
            quotas.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[quotas.OpData(key=key, value=value, remove=False)],
    )


def password_of(user: str) -> str:
    """What `put` gives a user."""
    return f"password of {user}"


def assert_done(results: Iterable[Any]) -> None:
    assert [result for result in results if result.error_code] == []


def await_powers(nodes: Nodes, security: Security, guests: Iterable[Guests]) -> None:
    """Return when each of them gets in and may do what it may: what is new takes effect a moment later, and
    a broker that has just started may not lead yet.
    """
    expected: dict[str, Powers | ErrorCode] = {}
    for writer, reader, _ in guests:
        expected |= {
            writer: OF_WRITER,
            reader: OF_READER,
            f"a token of {writer} by SCRAM-SHA-256": OF_WRITER,
            f"a token of {writer} by SCRAM-SHA-512": OF_WRITER,
            f"{writer} with another password": ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"{reader} by the other mechanism": ErrorCode.SASL_AUTHENTICATION_FAILED,
        }
    expected[STRANGER] = OF_STRANGER
    found: dict[str, Powers | ErrorCode] = {}

    def are_as_expected() -> bool:
        found.update(powers_of(security, nodes[1], guests))
        return found == expected

    nodes.comes(are_as_expected, lambda: f"{found}\nis not\n{expected}")


def powers_of(security: Security, node: Node, guests: Iterable[Guests]) -> dict[str, Powers | ErrorCode]:
    """Who was answered how, by the names of `await_powers`."""
    found: dict[str, Powers | ErrorCode] = {}
    for writer, reader, token in guests:
        found[writer] = powers(security, node, writer, password_of(writer), "SCRAM-SHA-256")
        found[reader] = powers(security, node, reader, password_of(reader), "SCRAM-SHA-512")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            found[f"a token of {writer} by {mechanism}"] = powers(
                security, node, token.token_id, token_password(token.hmac), mechanism, by_token=True
            )
        found[f"{writer} with another password"] = powers(security, node, writer, "guessed", "SCRAM-SHA-256")
        found[f"{reader} by the other mechanism"] = powers(
            security, node, reader, password_of(reader), "SCRAM-SHA-256"
        )
    password = security.users.passwords[STRANGER]
    found[STRANGER] = powers(security, node, STRANGER, password, "SCRAM-SHA-512")
    return found


def powers(
    security: Security, node: Node, user: str, password: str, mechanism: str, *, by_token: bool = False
) -> Powers | ErrorCode:
    """What happens to a user who reads and writes; the error if the login is refused."""
    try:
        connection = security.login(node.address, user, password, mechanism, by_token=by_token)
    except KafkaError as error:
        return error.code
    with closing(connection):
        may_read = ErrorCode(read(connection))
        # The last request: a connection that is throttled is served no more for a while.
        answer = written(connection)
        may_write = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        return may_read, may_write, answer.throttle_time_ms > 0


def listed(security: Security, node: Node) -> dict[str, list[Any]]:
    """ACLs, credentials, quotas and tokens, as a super user is shown them, sorted."""
    with closing(security.super_user(node)) as connection:
        acls = connection.send(EVERY_ACL)
        credentials = connection.send(DescribeUserScramCredentialsRequest(users=None))
        limits = connection.send(DescribeClientQuotasRequest(components=[], strict=False))
        tokens = connection.send(DescribeDelegationTokenRequest(owners=None))
    assert_done([acls, credentials, limits, tokens])
    return {
        "ACLs": sorted(
            (
                *(of.resource_type, of.resource_name, of.pattern_type),
                *(one.principal, one.host, one.operation, one.permission_type),
            )
            for of in acls.resources
            for one in of.acls
        ),
        "credentials": sorted(
            (of.user, sorted((one.mechanism, one.iterations) for one in of.credential_infos))
            for of in credentials.results
        ),
        "quotas": sorted(
            (
                sorted((part.entity_type, part.entity_name or "") for part in of.entity),
                sorted((one.key, one.value) for one in of.values),
            )
            for of in limits.entries
        ),
        "tokens": sorted(tokens.tokens, key=lambda token: str(token.token_id)),
    }
