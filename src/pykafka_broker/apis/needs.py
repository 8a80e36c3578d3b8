"""The authorization that a request needs, as each API declares it with its handler.

Kafka's table is in KafkaApis and ControllerApis. A need is checked in one of two places:

* With `names`, before the handler: for the resources of the whole request, such as its group. The request is
  refused if one of the names is. `admission.py` does that for every API, without code in its handler.
* Without `names`, by the handler, because the answer has an error for each topic, group or resource, or
  leaves out those that the client must not see. The handler asks the authorizer (`denials.py`), and the
  API declares that with `asked_by_handler()`. `admission.py` refuses to serve an API that does not, so that
  no check can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from pykafka_broker.apis.ports.authorizer import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    Authorizer,
    Requester,
)
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

#: Returns the resources of one type that a whole request is about; may be empty.
Names = Callable[[Any], Collection[str]]

REFUSALS = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Need(NamedTuple):
    """An operation on a type of resource; a request that meets the need `instead` is allowed too.

    If `names` is None the handler has to ask about each resource.
    """

    operation: AclOperation
    resource_type: AclResourceType
    names: Names | None = None
    instead: Need | None = None
    #: Whether the handler asks the authorizer about each resource; only for needs without `names`.
    is_asked: bool = False
    #: Whether it suffices to be allowed on any one name; `names` only says whether the request has the need.
    is_somewhere: bool = False

    def __str__(self) -> str:
        is_one_of_several = self.names is None and self.resource_type is not AclResourceType.CLUSTER
        each = "any " if self.is_somewhere else "each " if is_one_of_several else ""
        return f"{self.operation.name} on {each}{self.resource_type.name}"

    def __or__(self, instead: Need) -> Need:
        """A need that either of the two meets."""
        return self._replace(instead=instead)

    def asked_by_handler(self) -> Need:
        """The same need, of an API whose handler asks about each resource (`denials.py`)."""
        return self._replace(is_asked=True)

    def unchecked(self) -> Iterator[Need]:
        """The need itself and the need `instead`, if neither admission nor the handler checks them."""
        if self.names is None and not self.is_asked:
            yield self
        if self.instead is not None:
            yield from self.instead.unchecked()

    def refusal(self, request: Any, requester: Requester, authorizer: Authorizer) -> ErrorCode:
        """The error that refuses the whole request, else NONE.

        A need with an alternative is refused with its own error, not that of the alternative.
        """
        if self._is_met(request, requester, authorizer):
            return ErrorCode.NONE
        if self.instead is not None and not self.instead.refusal(request, requester, authorizer):
            return ErrorCode.NONE
        return REFUSALS[self.resource_type]

    def _is_met(self, request: Any, requester: Requester, authorizer: Authorizer) -> bool:
        if self.names is None:
            return True
        names = self.names(request)
        if self.is_somewhere:
            return not names or authorizer.allows_somewhere(requester, self.operation, self.resource_type)
        is_attempt = self.instead is None
        return all(
            authorizer.allows(requester, self.operation, self.resource_type, name, is_attempt=is_attempt)
            for name in names
        )


def on_cluster(operation: AclOperation, when: Callable[[Any], bool] = lambda request: True) -> Need:
    """An operation on the cluster, for each request for which `when` is true."""
    return Need(operation, AclResourceType.CLUSTER, lambda request: (CLUSTER_NAME,) if when(request) else ())


def on_group_of_request(operation: AclOperation) -> Need:
    """An operation on the group that the whole request is about."""
    return Need(operation, AclResourceType.GROUP, lambda request: (request.group_id,))


def on_transactional_id_of_request(operation: AclOperation, field: str = "transactional_id") -> Need:
    """An operation on the transactional id that the whole request is about, if it has one."""

    def names(request: Any) -> Collection[str]:
        name = getattr(request, field)
        return () if name is None else (name,)

    return Need(operation, AclResourceType.TRANSACTIONAL_ID, names)


def partly_on_cluster(operation: AclOperation) -> Need:
    """An operation on the cluster that only a part of the request needs; the handler asks."""
    return Need(operation, AclResourceType.CLUSTER)


def on_any_topic(operation: AclOperation) -> Need:
    """An operation on any topic: it suffices that the client may carry it out on one (KIP-679)."""
    return Need(operation, AclResourceType.TOPIC, lambda request: ("any",), is_somewhere=True)


def on_topics(operation: AclOperation) -> Need:
    """An operation on each topic; the handler asks."""
    return Need(operation, AclResourceType.TOPIC)


def on_groups(operation: AclOperation) -> Need:
    """An operation on each group; the handler asks."""
    return Need(operation, AclResourceType.GROUP)


def on_users(operation: AclOperation) -> Need:
    """An operation on each principal; the handler asks."""
    return Need(operation, AclResourceType.USER)


def on_delegation_tokens(operation: AclOperation) -> Need:
    """An operation on each delegation token; the handler asks."""
    return Need(operation, AclResourceType.DELEGATION_TOKEN)


def on_transactional_ids(operation: AclOperation) -> Need:
    """An operation on each transactional id; the handler asks."""
    return Need(operation, AclResourceType.TRANSACTIONAL_ID)
