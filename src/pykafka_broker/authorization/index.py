"""The ACLs of a cluster, and their decision on one operation on one resource.

An ACL concerns a resource if its name is the resource's, a prefix of it (PREFIXED), or "*". It concerns a
request if its principal is the request's or "User:*", its host the client's address or "*", and its operation
the requested one or ALL. Permission to READ, WRITE, DELETE or ALTER includes DESCRIBE, and permission to
ALTER_CONFIGS includes DESCRIBE_CONFIGS; a denial includes no other operation. An ACL that denies overrides
all that allow.

ACLs are indexed by type, principal and host, of which four sets concern a request. Each set has the names of
its ACLs (`names.py`) by permission, operation and pattern type. A decision looks up a few names, and takes as
long with a hundred thousand ACLs as with ten. `may_anywhere` takes one more step for each name that is denied
to this principal.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from pykafka_broker.authorization.names import Names
from pykafka_broker.protocol.acls import AclOperation, AclPermission, PatternType
from pykafka_broker.system.named_tuple import NamedTuple

#: The principal that stands for all, and the name and host that stand for all.
EVERYBODY = "User:*"
WILDCARD = "*"

#: By operation, the operations whose ACLs allow it.
_ALLOWED_BY: dict[int, frozenset[int]] = {
    operation: frozenset({operation, AclOperation.ALL, *implied_by})
    for operation, implied_by in {
        **dict.fromkeys(AclOperation, ()),
        AclOperation.DESCRIBE: (
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        ),
        AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
    }.items()
}

Key = TypeVar("Key")


class Acl(NamedTuple):
    """One ACL. The numbers are those of `protocol/acls.py`."""

    resource_type: int
    name: str
    pattern_type: int
    #: "User:alice".
    principal: str
    host: str
    operation: int
    permission: int


class Verdict(Enum):
    """The decision of ACLs on an operation."""

    ALLOWED = "allowed"
    #: An ACL denies it, or none of the ACLs that concern the resource allows it.
    DENIED = "denied"
    #: No ACL concerns the resource.
    NO_ACLS = "no ACLs"


class Ruling(NamedTuple):
    """The decision of ACLs on one request, and the ACL that decides, if a single one does."""

    verdict: Verdict
    acl: Acl | None = None


#: Plain numbers, which compare faster than members of enums.
_DENY, _ALL, _PREFIXED = int(AclPermission.DENY), int(AclOperation.ALL), int(PatternType.PREFIXED)
_NO_ACLS, _NOT_ALLOWED = Ruling(Verdict.NO_ACLS), Ruling(Verdict.DENIED)


#: The names of the ACLs of one type, principal and host, by permission, operation and pattern type.
_Grants = dict[tuple[int, int, int], Names]


class AclIndex:
    """A changing set of ACLs; an ACL that is added twice must be removed twice."""

    __slots__ = ("_concerned", "_count", "_grants")

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        #: By resource type, principal and host.
        self._grants: dict[tuple[int, str, str], _Grants] = {}
        #: The names of all ACLs, by resource type and pattern type.
        self._concerned: dict[tuple[int, int], Names] = {}
        self._count = 0
        for acl in acls:
            self.add(acl)

    def __len__(self) -> int:
        return self._count

    def add(self, acl: Acl) -> None:
        """Add an ACL."""
        holder, kind, concerned = _places(acl)
        self._grants.setdefault(holder, {}).setdefault(kind, Names()).add(acl.name)
        self._concerned.setdefault(concerned, Names()).add(acl.name)
        self._count += 1

    def remove(self, acl: Acl) -> None:
        """Remove an ACL. Raises KeyError if it is not there."""
        holder, kind, concerned = _places(acl)
        grants = self._grants[holder]
        _forget(grants, kind, acl.name)
        if not grants:
            del self._grants[holder]
        _forget(self._concerned, concerned, acl.name)
        self._count -= 1

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Ruling:
        """The decision on `operation` by `principal` from the address `host` on the resource."""
        allowing = None
        allowed_by = _ALLOWED_BY[operation]
        for holder, grants in self._held_by(principal, host, resource_type):
            for (permission, granted, pattern_type), names in grants.items():
                if permission == _DENY:
                    if granted != operation and granted != _ALL:
                        continue
                elif allowing is not None or granted not in allowed_by:
                    continue
                found = _concerning(names, pattern_type, name)
                if found is not None:
                    acl = Acl(resource_type, found, pattern_type, *holder[1:], granted, permission)
                    if permission == _DENY:
                        return Ruling(Verdict.DENIED, acl)
                    allowing = acl
        if allowing is not None:
            return Ruling(Verdict.ALLOWED, allowing)
        return _NOT_ALLOWED if self._is_concerned(resource_type, name) else _NO_ACLS

    def may_anywhere(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether `operation` is allowed on at least one possible name of the resource type (KIP-679).

        As in Apache Kafka, permissions of other operations that include this one do not count here.
        """
        found: dict[tuple[int, int], list[Names]] = {}
        for _, grants in self._held_by(principal, host, resource_type):
            for (permission, granted, pattern_type), names in grants.items():
                if granted in (operation, AclOperation.ALL):
                    found.setdefault((permission, pattern_type), []).append(names)
        denied = found.get((AclPermission.DENY, PatternType.LITERAL), ())
        denied_prefixes = found.get((AclPermission.DENY, PatternType.PREFIXED), ())
        allowed = found.get((AclPermission.ALLOW, PatternType.LITERAL), ())
        allowed_prefixes = found.get((AclPermission.ALLOW, PatternType.PREFIXED), ())
        if any(WILDCARD in names for names in denied):
            return False
        if any(WILDCARD in names for names in allowed):
            return True
        if any(True for names in allowed_prefixes for _ in names.left_by(denied_prefixes)):
            return True
        open_names = (name for names in allowed for name in names.left_by(denied_prefixes))
        return any(not any(name in names for names in denied) for name in open_names)

    def _held_by(
        self, principal: str, host: str, resource_type: int
    ) -> list[tuple[tuple[int, str, str], _Grants]]:
        """The sets of ACLs that concern requests of this principal from this address."""
        known = self._grants
        return [
            (holder, known[holder])
            for holder in (
                (resource_type, principal, host),
                (resource_type, principal, WILDCARD),
                (resource_type, EVERYBODY, host),
                (resource_type, EVERYBODY, WILDCARD),
            )
            if holder in known
        ]

    def _is_concerned(self, resource_type: int, name: str) -> bool:
        """Whether any ACL, for any principal, concerns the resource."""
        for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            names = self._concerned.get((resource_type, pattern_type))
            if names is not None and _concerning(names, pattern_type, name) is not None:
                return True
        return False


def _places(acl: Acl) -> tuple[tuple[int, str, str], tuple[int, int, int], tuple[int, int]]:
    """The keys of an ACL in the index."""
    return (
        (acl.resource_type, acl.principal, acl.host),
        (acl.permission, acl.operation, acl.pattern_type),
        (acl.resource_type, acl.pattern_type),
    )


def _forget(table: dict[Key, Names], key: Key, name: str) -> None:
    table[key].remove(name)
    if not table[key]:
        del table[key]


def _concerning(names: Names, pattern_type: int, name: str) -> str | None:
    """A name in `names` that concerns the resource `name`, or None."""
    if pattern_type == _PREFIXED:
        return names.beginning_of(name)
    if name in names:
        return name
    return WILDCARD if WILDCARD in names else None
