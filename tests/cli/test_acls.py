"""`acls`: who may do what."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator

import pytest

from pykafka_broker.broker.security.acl_words import SUPPORTED
from pykafka_broker.broker.security.audit_log import Question
from pykafka_broker.broker.security.told_denials import denial
from pykafka_broker.cli import acls as command
from pykafka_broker.protocol.acls import AclOperation, AclResourceType, PatternType
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def nothing_stays(run: Run) -> Iterator[None]:
    yield
    for acl in json.loads(run("acls", "list", "--json").out)["acls"]:
        kind = command._option(acl["resource_type"])
        name = () if kind == "cluster" else (acl["resource_name"],)
        run("acls", "remove", f"--{kind}", *name, "--resource-pattern-type", acl["pattern_type"])


def test_acls_are_added_listed_and_removed(run: Run) -> None:
    bob = "\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)\n"
    resource = "for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:\n"

    added = run("acls", "add", "--allow-principal", "User:bob", "--operation", "read", "--topic", "orders")
    assert added.out == f"Adding ACLs {resource}{bob}\n"
    assert run("acls", "list").out == f"Current ACLs {resource}{bob}\n"
    assert run("acls", "list", "--topic", "other").out == ""
    assert run("acls", "list", "--principal", "User:eve").out == ""

    assert run("acls", "remove", "--topic", "orders", "--dry-run").out == (
        f"ACLs that would be removed {resource}{bob}\n"
    )
    assert run("acls", "remove", "--topic", "orders").out == f"Removed ACLs {resource}{bob}\n"
    assert run("acls", "list").out == ""


@pytest.mark.parametrize(
    ("operation", "kind", "name"),
    [
        (AclOperation.DESCRIBE, AclResourceType.TOPIC, "orders"),
        (AclOperation.READ, AclResourceType.GROUP, "the readers"),
        (AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, "kafka-cluster"),
        (AclOperation.TWO_PHASE_COMMIT, AclResourceType.TRANSACTIONAL_ID, "x"),
        (AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, "t"),
        (AclOperation.CREATE_TOKENS, AclResourceType.USER, "User:eve"),
    ],
)
def test_what_a_denial_offers_to_add_is_what_was_denied(
    run: Run, operation: AclOperation, kind: AclResourceType, name: str
) -> None:
    remedy = denial(Question("User:bob", "10.0.0.1", operation, kind, name, 0), None, "DefaultDeny").remedy
    _, offered, _ = remedy.split("`")
    program, group, *words = shlex.split(offered)

    assert (program, group) == ("pykafka-broker", "acls")
    assert shown(run, *words) == [(kind.name, name, operation.name, "ALLOW")]


def shown(run: Run, *words: str) -> list[tuple[str, ...]]:
    """(resource, name, operation, permission) of what a command has said."""
    found = json.loads(run("acls", *words, "--json").out)["acls"]
    fields = "resource_type", "resource_name", "operation", "permission"
    return [tuple(acl[field] for field in fields) for acl in found]


def test_a_producer_and_a_consumer_get_what_they_need(run: Run) -> None:
    who = ("--allow-principal", "User:bob")
    assert shown(
        run, "add", *who, "--producer", "--topic", "t", "--transactional-id", "x", "--idempotent"
    ) == [
        ("TOPIC", "t", "WRITE", "ALLOW"),
        ("TOPIC", "t", "DESCRIBE", "ALLOW"),
        ("TOPIC", "t", "CREATE", "ALLOW"),
        ("TRANSACTIONAL_ID", "x", "WRITE", "ALLOW"),
        ("TRANSACTIONAL_ID", "x", "DESCRIBE", "ALLOW"),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE", "ALLOW"),
    ]
    assert shown(run, "add", *who, "--consumer", "--topic", "t", "--group", "g") == [
        ("TOPIC", "t", "READ", "ALLOW"),
        ("TOPIC", "t", "DESCRIBE", "ALLOW"),
        ("GROUP", "g", "READ", "ALLOW"),
    ]


def test_names_may_be_beginnings_and_some_may_be_denied(run: Run) -> None:
    words = ("--resource-pattern-type", "prefixed", "--topic", "pre")
    run("acls", "add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", *words)
    [acl] = json.loads(run("acls", "list", "--topic", "prefix", *words[:1], "match", "--json").out)["acls"]
    assert acl == {
        "resource_type": "TOPIC",
        "resource_name": "pre",
        "pattern_type": "PREFIXED",
        "principal": "User:eve",
        "host": "10.0.0.1",
        "operation": "ALL",
        "permission": "DENY",
    }
    assert shown(run, "remove", "--topic", "pre") == []
    assert len(shown(run, "remove", *words)) == 1


def test_some_of_many_are_removed(run: Run) -> None:
    words = ("--topic", "t", "--operation", "read", "--operation", "write")
    run("acls", "add", "--allow-principal", "User:bob", "--allow-principal", "User:eve", *words)
    removed = shown(run, "remove", "--allow-principal", "User:eve", "--operation", "read", "--topic", "t")
    assert removed == [("TOPIC", "t", "READ", "ALLOW")]
    assert len(shown(run, "list", "--topic", "t")) == 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("add --allow-principal User:bob", "Name resources"),
        ("add --topic t", "Say who: --allow-principal or --deny-principal."),
        ("add --allow-principal User:bob --topic t --resource-pattern-type match", "literal or prefixed"),
        (
            "add --allow-principal User:bob --group g --operation write",
            "--group has the operations all, read",
        ),
        ("add --allow-principal User:bob --topic t --idempotent", "--idempotent goes with --producer."),
        ("add --allow-principal User:bob --group g --producer", "need nothing of these resources."),
        ("remove", "Name resources"),
        ("remove --topic t --operation read", "Say who: --allow-principal or --deny-principal."),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(run: Run, words: str, text: str) -> None:
    refused = run("acls", *words.split())
    assert refused.status == 2
    assert text in refused.err


def test_a_principal_without_a_type_is_refused_by_the_cluster(run: Run) -> None:
    refused = run("acls", "add", "--allow-principal", "bob", "--topic", "t")
    assert (refused.status, "Could not parse principal from `bob`" in refused.err) == (1, True)


def test_at_a_terminal_acls_are_a_table(run: Run, terminal: Callable[[int], None]) -> None:
    run("acls", "add", "--allow-principal", "User:bob", "--operation", "read", "--topic", "orders")
    terminal(100)
    table = run("acls", "list").out.split()
    assert table[7:] == ["TOPIC", "orders", "LITERAL", "User:bob", "*", "READ", "ALLOW"]


def test_the_words_stand_for_the_numbers_of_the_protocol() -> None:
    assert {command.kafka_word(word): number for word, number in command.RESOURCES.items()} == {
        each.name: each.value for each in AclResourceType if each is not AclResourceType.ANY
    }
    assert {command.kafka_word(word): number for word, number in command.OPERATIONS.items()} == {
        each.name: each.value for each in AclOperation if each is not AclOperation.ANY
    }
    assert {command.kafka_word(word): number for word, number in command.PATTERNS.items()} == {
        each.name: each.value for each in PatternType
    }
    for kind, supported in SUPPORTED.items():
        [words] = (
            words.split() for option, words in command.SUPPORTED.items() if command.RESOURCES[option] == kind
        )
        assert sum(1 << command.OPERATIONS[word] for word in words) == supported
