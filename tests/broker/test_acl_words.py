"""ACLs in a few words."""

from __future__ import annotations

import pytest

from pykafka_broker.authorization.index import Acl
from pykafka_broker.broker.security.acl_words import SUPPORTED, acl_in_words
from pykafka_broker.protocol.acls import AclOperation as Op
from pykafka_broker.protocol.acls import AclPermission, AclResourceType, PatternType

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP


@pytest.mark.parametrize(
    ("text", "kind", "name", "pattern", "operation", "permission"),
    [
        ("write topic orders", TOPIC, "orders", LITERAL, Op.WRITE, ALLOW),
        ("read topic orders-*", TOPIC, "orders-", PREFIXED, Op.READ, ALLOW),
        ("Read group *", GROUP, "*", LITERAL, Op.READ, ALLOW),
        ("deny  ALL topic orders", TOPIC, "orders", LITERAL, Op.ALL, DENY),
        ("DescribeConfigs topic deny", TOPIC, "deny", LITERAL, Op.DESCRIBE_CONFIGS, ALLOW),
        ("read group  two  words ", GROUP, "two  words", LITERAL, Op.READ, ALLOW),
        ("alter cluster", AclResourceType.CLUSTER, "kafka-cluster", LITERAL, Op.ALTER, ALLOW),
        ("create_tokens user bob", AclResourceType.USER, "User:bob", LITERAL, Op.CREATE_TOKENS, ALLOW),
        ("describe-tokens user b*", AclResourceType.USER, "User:b", PREFIXED, Op.DESCRIBE_TOKENS, ALLOW),
        ("all user *", AclResourceType.USER, "*", LITERAL, Op.ALL, ALLOW),
        ("describe delegation-token id", AclResourceType.DELEGATION_TOKEN, "id", LITERAL, Op.DESCRIBE, ALLOW),
        ("write transactional-id tx", AclResourceType.TRANSACTIONAL_ID, "tx", LITERAL, Op.WRITE, ALLOW),
    ],
)
def test_a_text_is_an_acl(
    text: str, kind: int, name: str, pattern: int, operation: int, permission: int
) -> None:
    assert acl_in_words("alice", text) == Acl(kind, name, pattern, "User:alice", "*", operation, permission)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "'' is no ACL: say, for example, 'write topic orders'"),
        ("deny", "'deny' is no ACL"),
        ("write", "'write' is no ACL"),
        ("drink topic orders", "'drink' is none of all, read, write"),
        ("any topic orders", "'any' is none of all, read, write"),
        ("write river orders", "'river' is none of topic, group, cluster"),
        ("write group billing", "there is no write of a group"),
        ("read user bob", "there is no read of a user"),
        ("write topic", "which topic\\? \\* is all"),
        ("alter cluster kafka-cluster", "the cluster has no name"),
    ],
)
def test_another_text_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        acl_in_words("alice", text)


def test_every_type_of_resource_has_operations() -> None:
    for resource_type in AclResourceType:
        if resource_type is not AclResourceType.ANY:
            name = "" if resource_type is AclResourceType.CLUSTER else " name"
            for operation in Op:
                if SUPPORTED[resource_type] & (1 << operation):
                    text = f"{operation.name} {resource_type.name}{name}"
                    assert acl_in_words("alice", text).operation == operation
