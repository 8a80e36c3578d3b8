"""The numbers of ACLs, as requests, records and bit fields of allowed operations tell them.

0 stands for what a client knows and this release does not; ANY and MATCH are words of filters alone.
"""

from __future__ import annotations

from enum import IntEnum


class AclOperation(IntEnum):
    """What may be done to a resource; ALL stands in ACLs for each of them."""

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
    """What ACLs are about."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of an ACL is meant: as it is, or as the beginning of names; a literal "*" is all."""

    ANY = 1
    #: Of a filter: every ACL that concerns the resource with this name.
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """What an ACL says of those whom it concerns."""

    ANY = 1
    DENY = 2
    ALLOW = 3
