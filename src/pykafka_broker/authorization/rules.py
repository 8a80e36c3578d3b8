"""What a principal may do: super users everything, others what the ACLs say.

On a resource that no ACL concerns `allow.everyone.if.no.acl.found` decides.
"""

from __future__ import annotations

from pykafka_broker.authorization.index import Acl, AclIndex, Verdict
from pykafka_broker.system.named_tuple import NamedTuple

#: Stands for a name without ACLs of its own, as in Apache Kafka.
SOME_NAME = "hardcode"


class Decision(NamedTuple):
    """Whether an operation is allowed."""

    is_allowed: bool
    #: The ACL that decides; or another rule, by its name in Apache Kafka.
    rule: Acl | str


SUPER_USER = Decision(True, "SuperUser")
DEFAULT_ALLOW = Decision(True, "DefaultAllow")
DEFAULT_DENY = Decision(False, "DefaultDeny")


class StandardRules(NamedTuple):
    """The rules that are configured; the ACLs are given with each question."""

    #: Principals that may do everything: "User:alice".
    super_users: frozenset[str]
    #: Whether every user may do everything with a resource that has no ACL.
    allows_everyone: bool

    def decide(
        self, acls: AclIndex, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> Decision:
        """The decision on `operation` by `principal` from the address `host` on the resource."""
        if principal in self.super_users:
            return SUPER_USER
        verdict, acl = acls.decide(principal, host, operation, resource_type, name)
        if acl is not None:
            return Decision(verdict is Verdict.ALLOWED, acl)
        return DEFAULT_ALLOW if verdict is Verdict.NO_ACLS and self.allows_everyone else DEFAULT_DENY

    def allow_somewhere(
        self, acls: AclIndex, principal: str, host: str, operation: int, resource_type: int
    ) -> bool:
        """Whether the operation is allowed on at least one possible name of the resource type (KIP-679)."""
        decision = self.decide(acls, principal, host, operation, resource_type, SOME_NAME)
        return decision.is_allowed or acls.may_anywhere(principal, host, operation, resource_type)
