"""The numbers of ACLs in requests, records and bit fields of allowed operations.

0 is a value that a client knows and this release does not; ANY and MATCH occur only in filters.
"""

from __future__ import annotations

from enum import IntEnum

#: The name of the one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"


class AclOperation(IntEnum):
    """An operation on a resource; ALL in an ACL means every operation."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclResourceType(IntEnum):
    """The type of an ACL's resource."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of an ACL matches: exactly, or as a prefix; a literal "*" matches all names."""

    ANY = 1
    #: In a filter: every ACL that matches the resource with this name.
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """Whether an ACL allows or denies."""

    ANY = 1
    DENY = 2
    ALLOW = 3
