"""The authorizer that reads ACLs, with the rules of Apache Kafka's StandardAuthorizer.

`authorization/rules.py` decides, by the ACLs of the newest metadata; this file follows the ACLs, and logs
decisions. Before the node has read its metadata only super users are served, and only on controller listeners
of `early.start.listeners`; other listeners open later.
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
from pykafka_broker.authorization.counts import DecisionCounts
from pykafka_broker.authorization.index import AclIndex
from pykafka_broker.authorization.rules import StandardRules
from pykafka_broker.broker.security.audit_log import AuditLog, Question
from pykafka_broker.broker.security.told_denials import denial
from pykafka_broker.cluster.image import NO_ACLS, ClusterImage, acl_of
from pykafka_broker.machine.history import Tell, unheard


class StandardAuthorizer:
    """Decides by the ACLs of the newest metadata. Event loop only."""

    def __init__(self, rules: StandardRules, now_ms: Callable[[], int], tell: Tell = unheard) -> None:
        self._rules = rules
        self._index = AclIndex()
        self._is_loaded = False
        self._audit = AuditLog(now_ms)
        self._tell = tell
        #: Those on attempts of clients.
        self.decisions = DecisionCounts()

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
        principal, host = self._known(requester)
        is_allowed, rule = self._rules.decide(self._index, principal, host, operation, resource_type, name)
        if is_attempt:
            if is_allowed:
                self.decisions.allowed += 1
            else:
                self.decisions.denied += 1
        if is_attempt and (not is_allowed or self._audit.is_detailed):
            question = Question(principal, host, operation, resource_type, name, requester.api_key)
            if is_allowed:
                self._audit.allowed(question, rule, requester)
            else:
                self._audit.denied(question, rule, requester)
                self._tell(denial(question, requester.client_id, rule))
        return is_allowed

    def allows_somewhere(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether the operation is allowed on some name of the resource type. Raises as `allows`."""
        principal, host = self._known(requester)
        return self._rules.allow_somewhere(self._index, principal, host, operation, resource_type)

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

    def _known(self, requester: Requester) -> tuple[str, str]:
        """The principal and the address of a requester on whom the rules can decide. Raises as `allows`."""
        principal = requester.principal
        if not self._is_loaded and principal not in self._rules.super_users:
            raise AclsNotLoaded
        return principal, requester.client_host.lstrip("/")
