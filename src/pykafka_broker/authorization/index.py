"""The ACLs of a cluster, and what they say of one operation on one resource.

An ACL concerns a resource if its name is the resource's, a prefix of it (PREFIXED), or "*". It concerns a
request if its principal is the request's or "User:*", its host the client's address or "*", and its
operation the one asked for or ALL. Who is allowed to READ, WRITE, DELETE or ALTER is allowed to DESCRIBE as
well, and who is allowed to ALTER_CONFIGS to DESCRIBE_CONFIGS; who is denied them is denied nothing more. An
ACL that denies outweighs all that allow.

ACLs lie by type, principal and host, of which a request has four sets; there by permission, operation and
pattern type; and there stand their names alone (`names.py`). A decision looks up a few names, and takes as
long with a hundred thousand ACLs as with ten. Whether something is allowed anywhere takes one step more for
each name that is denied to this principal.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from pykafka_broker.authorization.names import Names
from pykafka_broker.protocol.acls import AclOperation, AclPermission, PatternType
from pykafka_broker.system.named_tuple import NamedTuple

#: The principal that stands for all, and in names and hosts the word for all.
EVERYBODY = "User:*"
WILDCARD = "*"

#: The operations of ACLs that allow an operation; those of others allow only themselves.
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
    """What ACLs say of an operation."""

    ALLOWED = "allowed"
    #: One denies it, or none of those that concern the resource allows it.
    DENIED = "denied"
    #: None concerns the resource.
    NO_ACLS = "no ACLs"


class Ruling(NamedTuple):
    """What ACLs say of one request, and the one that decides: none where no single one does."""

    verdict: Verdict
    acl: Acl | None = None


#: As plain numbers, which compare faster than members of enums.
_DENY, _ALL, _PREFIXED = int(AclPermission.DENY), int(AclOperation.ALL), int(PatternType.PREFIXED)
_NO_ACLS, _NOT_ALLOWED = Ruling(Verdict.NO_ACLS), Ruling(Verdict.DENIED)


#: What ACLs of one type, principal and host say: their names, by permission, operation and pattern type.
_Grants = dict[tuple[int, int, int], Names]


class AclIndex:
    """ACLs that come and go; an ACL that is added twice has to be removed twice."""

    __slots__ = ("_concerned", "_count", "_grants")

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        #: By resource type, principal and host.
        self._grants: dict[tuple[int, str, str], _Grants] = {}
        #: The names of all, by resource type and pattern type.
        self._concerned: dict[tuple[int, int], Names] = {}
        self._count = 0
        for acl in acls:
            self.add(acl)

    def __len__(self) -> int:
        return self._count

    def add(self, acl: Acl) -> None:
        """Have it count from now on."""
        holder, kind, concerned = _places(acl)
        self._grants.setdefault(holder, {}).setdefault(kind, Names()).add(acl.name)
        self._concerned.setdefault(concerned, Names()).add(acl.name)
        self._count += 1

    def remove(self, acl: Acl) -> None:
        """Forget it. Raises KeyError if there is none like it."""
        holder, kind, concerned = _places(acl)
        grants = self._grants[holder]
        _forget(grants, kind, acl.name)
        if not grants:
            del self._grants[holder]
        _forget(self._concerned, concerned, acl.name)
        self._count -= 1

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Ruling:
        """What they say of `operation` by `principal` from the address `host` on the resource."""
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
        """Whether they allow `operation` on at least one name that a resource of the type may have (KIP-679).

        Operations that imply others count only for themselves here, as in Apache Kafka.
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
        """What concerns requests of this principal from this address."""
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
        """Whether any of them is about the resource, whomever it concerns."""
        for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            names = self._concerned.get((resource_type, pattern_type))
            if names is not None and _concerning(names, pattern_type, name) is not None:
                return True
        return False


def _places(acl: Acl) -> tuple[tuple[int, str, str], tuple[int, int, int], tuple[int, int]]:
    """Where an ACL stands."""
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
    """One of the names that concerns the resource with this name."""
    if pattern_type == _PREFIXED:
        return names.beginning_of(name)
    if name in names:
        return name
    return WILDCARD if WILDCARD in names else None
