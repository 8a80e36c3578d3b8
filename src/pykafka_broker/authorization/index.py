"""The ACLs of a cluster, and what they say of one operation on one resource.

An ACL concerns a resource if its name is the resource's, a prefix of it (PREFIXED), or "*". It concerns a
request if its principal is the request's or "User:*", its host the client's address or "*", and its
operation the one asked for or ALL. Who is allowed to READ, WRITE, DELETE or ALTER is allowed to DESCRIBE as
well, and who is allowed to ALTER_CONFIGS to DESCRIBE_CONFIGS; who is denied them is denied nothing more. An
ACL that denies outweighs all that allow.

A decision looks up the resource's name, its prefixes of those lengths that prefixed ACLs have, and "*"; under
each of them the ACLs of two principals. It takes as long with a hundred thousand ACLs as with ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TypeVar

from pykafka_broker.protocol.acls import AclOperation, AclPermission, PatternType
from pykafka_broker.system.named_tuple import NamedTuple

Element = TypeVar("Element")

#: The principal that stands for all, and in names and hosts the word for all.
EVERYBODY = "User:*"
WILDCARD = "*"

#: The operations of ACLs that allow an operation; those of others allow only themselves.
_ALLOWED_BY = {
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


class AclIndex:
    """ACLs that come and go; an ACL that is added twice has to be removed twice."""

    __slots__ = ("_count", "_of_principals", "_types")

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._types: dict[int, _OfType] = {}
        #: By resource type and principal.
        self._of_principals: dict[tuple[int, str], Counter[Acl]] = {}
        self._count = 0
        for acl in acls:
            self.add(acl)

    def __len__(self) -> int:
        return self._count

    def add(self, acl: Acl) -> None:
        """Have it count from now on."""
        self._types.setdefault(acl.resource_type, _OfType()).add(acl)
        self._of_principals.setdefault((acl.resource_type, acl.principal), Counter())[acl] += 1
        self._count += 1

    def remove(self, acl: Acl) -> None:
        """Forget it. Raises KeyError if there is none like it."""
        key = acl.resource_type, acl.principal
        _take(self._of_principals[key], acl)
        if not self._of_principals[key]:
            del self._of_principals[key]
        self._types[acl.resource_type].remove(acl)
        self._count -= 1

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        """What they say of `operation` by `principal` from the address `host` on the resource."""
        of_type = self._types.get(resource_type)
        if of_type is None:
            return Verdict.NO_ACLS
        verdict = Verdict.NO_ACLS
        allowed_by = _ALLOWED_BY[AclOperation(operation)]
        for of_pattern in of_type.concerning(name):
            if verdict is Verdict.NO_ACLS:
                verdict = Verdict.DENIED
            for who in (principal, EVERYBODY):
                for acl in of_pattern.get(who, ()):
                    if acl.host not in (host, WILDCARD):
                        continue
                    if acl.permission == AclPermission.DENY:
                        if acl.operation in (operation, AclOperation.ALL):
                            return Verdict.DENIED
                    elif acl.operation in allowed_by:
                        verdict = Verdict.ALLOWED
        return verdict

    def may_anywhere(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether they allow `operation` on at least one name that a resource of the type may have (KIP-679).

        Operations that imply others count only for themselves here, as in Apache Kafka.
        """
        denied_names: set[str] = set()
        denied_prefixes: set[str] = set()
        allowing = []
        for acl in self._concerning(principal, host, operation, resource_type):
            if acl.permission == AclPermission.ALLOW:
                allowing.append(acl)
            elif acl.pattern_type == PatternType.PREFIXED:
                denied_prefixes.add(acl.name)
            elif acl.name == WILDCARD:
                return False
            else:
                denied_names.add(acl.name)

        def is_open(acl: Acl) -> bool:
            if acl.pattern_type == PatternType.LITERAL:
                if acl.name == WILDCARD:
                    return True
                if acl.name in denied_names:
                    return False
            return not any(acl.name[:length] in denied_prefixes for length in range(1, len(acl.name) + 1))

        return any(map(is_open, allowing))

    def _concerning(self, principal: str, host: str, operation: int, resource_type: int) -> Iterator[Acl]:
        for who in dict.fromkeys((principal, EVERYBODY)):
            for acl in self._of_principals.get((resource_type, who), ()):
                if acl.host in (host, WILDCARD) and acl.operation in (operation, AclOperation.ALL):
                    yield acl


#: ACLs with one name and pattern type, by principal.
_OfPattern = dict[str, Counter[Acl]]


class _OfType:
    """The ACLs about one type of resource."""

    __slots__ = ("_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, _OfPattern] = {}
        self._prefixed: dict[str, _OfPattern] = {}
        #: How many different prefixes have this length.
        self._lengths: Counter[int] = Counter()

    def _table(self, acl: Acl) -> dict[str, _OfPattern]:
        return self._prefixed if acl.pattern_type == PatternType.PREFIXED else self._literal

    def add(self, acl: Acl) -> None:
        table = self._table(acl)
        of_pattern = table.get(acl.name)
        if of_pattern is None:
            of_pattern = table[acl.name] = {}
            if table is self._prefixed:
                self._lengths[len(acl.name)] += 1
        of_pattern.setdefault(acl.principal, Counter())[acl] += 1

    def remove(self, acl: Acl) -> None:
        table = self._table(acl)
        of_pattern = table[acl.name]
        _take(of_pattern[acl.principal], acl)
        if not of_pattern[acl.principal]:
            del of_pattern[acl.principal]
        if not of_pattern:
            del table[acl.name]
            if table is self._prefixed:
                _take(self._lengths, len(acl.name))

    def concerning(self, name: str) -> Iterator[_OfPattern]:
        """Those whose pattern has this name."""
        literal, prefixed = self._literal, self._prefixed
        if name in literal:
            yield literal[name]
        if WILDCARD in literal and name != WILDCARD:
            yield literal[WILDCARD]
        for length in self._lengths:
            if length <= len(name):
                of_pattern = prefixed.get(name[:length])
                if of_pattern is not None:
                    yield of_pattern


def _take(counts: Counter[Element], element: Element) -> None:
    if counts[element] > 1:
        counts[element] -= 1
    else:
        del counts[element]
