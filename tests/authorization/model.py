"""What ACLs say, as Kafka's documentation tells it: each ACL is looked at, one after the other.

Slow and plain, for the index to be compared with. One deviation from "implied" operations is Kafka's own: an
ACL that denies never implies others.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.authorization.index import Acl, Verdict
from pykafka_broker.protocol.acls import AclOperation as Op
from pykafka_broker.protocol.acls import AclPermission, PatternType

IMPLIES = {
    Op.READ: {Op.DESCRIBE},
    Op.WRITE: {Op.DESCRIBE},
    Op.DELETE: {Op.DESCRIBE},
    Op.ALTER: {Op.DESCRIBE},
    Op.ALTER_CONFIGS: {Op.DESCRIBE_CONFIGS},
}


def concerns_resource(acl: Acl, resource_type: int, name: str) -> bool:
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, "*")


def concerns_requester(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, "User:*") and acl.host in (host, "*")


def denies(acl: Acl, operation: int) -> bool:
    return acl.permission == AclPermission.DENY and acl.operation in (operation, Op.ALL)


def allows(acl: Acl, operation: int) -> bool:
    covered = {acl.operation, *IMPLIES.get(Op(acl.operation), ())}
    return acl.permission == AclPermission.ALLOW and (acl.operation == Op.ALL or operation in covered)


def decide(
    acls: Sequence[Acl], principal: str, host: str, operation: int, resource_type: int, name: str
) -> Verdict:
    about = [acl for acl in acls if concerns_resource(acl, resource_type, name)]
    mine = [acl for acl in about if concerns_requester(acl, principal, host)]
    if any(denies(acl, operation) for acl in mine):
        return Verdict.DENIED
    if any(allows(acl, operation) for acl in mine):
        return Verdict.ALLOWED
    return Verdict.DENIED if about else Verdict.NO_ACLS


def may_anywhere(acls: Sequence[Acl], principal: str, host: str, operation: int, resource_type: int) -> bool:
    """Whether an ACL allows the operation that no other one takes back as a whole."""
    mine = [
        acl
        for acl in acls
        if acl.resource_type == resource_type
        and concerns_requester(acl, principal, host)
        and acl.operation in (operation, Op.ALL)
    ]
    denying = [acl for acl in mine if acl.permission == AclPermission.DENY]
    if any(acl.name == "*" and acl.pattern_type == PatternType.LITERAL for acl in denying):
        return False

    def is_taken_back(allowing: Acl) -> bool:
        if allowing.pattern_type == PatternType.LITERAL and allowing.name == "*":
            return False
        for acl in denying:
            if acl.pattern_type == PatternType.PREFIXED and allowing.name.startswith(acl.name):
                return True
            if acl.pattern_type == allowing.pattern_type == PatternType.LITERAL and acl.name == allowing.name:
                return True
        return False

    return any(acl.permission == AclPermission.ALLOW and not is_taken_back(acl) for acl in mine)
