"""The authorizer that reads ACLs, with the rules of Apache Kafka's StandardAuthorizer.

Super users may do everything. For others the ACLs of the metadata decide (`authorization/index.py`); on a
resource without ACLs `allow.everyone.if.no.acl.found` decides. Before the node has read its metadata only
super users are served, and only on controller listeners of `early.start.listeners`; other listeners open
later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pykafka_broker.apis.ports.authorizer import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    AclResourceType,
    AclsNotLoaded,
    Requester,
)
from pykafka_broker.authorization.index import AclIndex, Ruling, Verdict
from pykafka_broker.broker.security.audit_log import AuditLog, Question, rule_of
from pykafka_broker.cluster.image import NO_ACLS, ClusterImage, acl_of
from pykafka_broker.config.authorizer import AuthorizerSettings

#: Stands for a name without ACLs of its own, as in Apache Kafka.
SOME_NAME = "hardcode"


class StandardAuthorizer:
    """Decides by the ACLs of the newest metadata. Event loop only."""

    def __init__(self, settings: AuthorizerSettings, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._index = AclIndex()
        self._is_loaded = False
        self._audit = AuditLog(now_ms)

    def published(self, old: ClusterImage, new: ClusterImage) -> None:
        """`new` is the newest committed metadata: the first, or the one after `old`."""
        before = old.acls if self._is_loaded else NO_ACLS
        self._is_loaded = True
        if new.acls is before:
            return
        for _, gone, come in new.acls.changes_since(before):
            if gone is not None:
                self._index.remove(acl_of(gone))
            if come is not None:
                self._index.add(acl_of(come))

    # -- Authorizer ------------------------------------------------------------------------------------------

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        is_attempt: bool = True,
    ) -> bool:
        """Whether the operation is allowed on this resource.

        Raises:
            AclsNotLoaded: the metadata is not read yet.
        """
        principal = requester.principal
        if principal in self._settings.super_users:
            if is_attempt and self._audit.is_detailed:
                self._audit.allowed(_question(requester, operation, resource_type, name), "SuperUser")
            return True
        if not self._is_loaded:
            raise AclsNotLoaded
        ruling = self._index.decide(
            principal, requester.client_host.lstrip("/"), operation, resource_type, name
        )
        verdict = ruling.verdict
        is_allowed = verdict is Verdict.ALLOWED or (
            verdict is Verdict.NO_ACLS and self._settings.allows_everyone
        )
        if is_attempt and (not is_allowed or self._audit.is_detailed):
            tell = self._audit.allowed if is_allowed else self._audit.denied
            tell(_question(requester, operation, resource_type, name), self._rule(ruling, is_allowed))
        return is_allowed

    def allows_somewhere(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether the operation is allowed on at least one possible name of the resource type."""
        if self.allows(requester, operation, resource_type, SOME_NAME, is_attempt=False):
            return True
        host = requester.client_host.lstrip("/")
        return self._index.may_anywhere(requester.principal, host, operation, resource_type)

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
        *,
        is_attempt: bool = True,
    ) -> Collection[str]:
        """The `names` on which the operation is allowed, in their order. Raises as `allows`."""
        return [
            name
            for name in names
            if self.allows(requester, operation, resource_type, name, is_attempt=is_attempt)
        ]

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        """The operations that the type supports and the client may do, as a bit field."""
        supported = SUPPORTED_OPERATIONS[resource_type]
        return sum(
            1 << operation
            for operation in AclOperation
            if supported & (1 << operation)
            and self.allows(requester, operation, resource_type, name, is_attempt=False)
        )

    @staticmethod
    def _rule(ruling: Ruling, is_allowed: bool) -> str:
        if ruling.acl is not None:
            return rule_of(ruling.acl)
        return "DefaultAllow" if is_allowed else "DefaultDeny"


def _question(
    requester: Requester, operation: AclOperation, resource_type: AclResourceType, name: str
) -> Question:
    host = requester.client_host.lstrip("/")
    return Question(requester.principal, host, operation, resource_type, name, requester.api_key)
