"""What is denied to a client: single topics, groups and ids of a request, which its handler asks about.

Without an authorizer these checks cost nothing: the names are not even gathered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Set
from typing import TYPE_CHECKING, Any, TypeVar

from pykafka_broker.apis.ports.authorizer import (
    ALLOW_ALL,
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
)
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

Described = TypeVar("Described")

#: The message of an answer about a consumer or share group that has topics which the client may not see.
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."

_NONE: frozenset[str] = frozenset()


def denied(
    ctx: AdministrationContext,
    operation: AclOperation,
    resource_type: AclResourceType,
    names: Iterable[str],
    *,
    is_attempt: bool = True,
) -> Set[str]:
    """The `names` on which the client may not carry out the operation; see `Authorizer.filter`."""
    authorizer = ctx.node.authorizer
    if authorizer is ALLOW_ALL:
        return _NONE
    asked = dict.fromkeys(names)
    return asked.keys() - set(
        authorizer.filter(ctx, operation, resource_type, asked.keys(), is_attempt=is_attempt)
    )


def denied_topics(
    ctx: AdministrationContext, operation: AclOperation, names: Iterable[str], *, is_attempt: bool = True
) -> Set[str]:
    """`denied`, of topics."""
    return denied(ctx, operation, AclResourceType.TOPIC, names, is_attempt=is_attempt)


def denied_groups(
    ctx: AdministrationContext, operation: AclOperation, names: Iterable[str], *, is_attempt: bool = True
) -> Set[str]:
    """`denied`, of groups."""
    return denied(ctx, operation, AclResourceType.GROUP, names, is_attempt=is_attempt)


def denied_transactional_ids(
    ctx: AdministrationContext, operation: AclOperation, names: Iterable[str], *, is_attempt: bool = True
) -> Set[str]:
    """`denied`, of transactional ids."""
    return denied(ctx, operation, AclResourceType.TRANSACTIONAL_ID, names, is_attempt=is_attempt)


async def describe_each(
    group_ids: Collection[str],
    ctx: AdministrationContext,
    describe: Callable[[str], Awaitable[Described]],
    refused: Callable[[ErrorCode, str], Described],
) -> list[Described]:
    """Describe groups, one after the other; groups that the client may not describe come first."""
    hidden = denied_groups(ctx, AclOperation.DESCRIBE, group_ids)
    error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    described = [refused(error, group_id) for group_id in group_ids if group_id in hidden]
    return described + [await describe(group_id) for group_id in group_ids if group_id not in hidden]


def tell_operations(groups: Iterable[Any], ctx: AdministrationContext) -> None:
    """Put what the client may do with each group into the answers about groups that have no error."""
    for group in groups:
        if not group.error_code:
            operations = ctx.node.authorizer.operations(ctx, AclResourceType.GROUP, group.group_id)
            group.authorized_operations = operations


def may_on_cluster(ctx: AdministrationContext, operation: AclOperation, *, is_attempt: bool = True) -> bool:
    """Whether the client may carry out the operation on the cluster."""
    return not denied(ctx, operation, AclResourceType.CLUSTER, (CLUSTER_NAME,), is_attempt=is_attempt)


def refusal_of_configs(
    ctx: AdministrationContext, operation: AclOperation, resource_type: int, name: str
) -> ErrorCode:
    """The error if the client may not do this to a resource's configs; else, and for unknown types, NONE."""
    if resource_type == ResourceType.TOPIC:
        is_denied = denied_topics(ctx, operation, (name,))
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_denied else ErrorCode.NONE
    if resource_type == ResourceType.GROUP:
        is_denied = denied_groups(ctx, operation, (name,))
        return ErrorCode.GROUP_AUTHORIZATION_FAILED if is_denied else ErrorCode.NONE
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS):
        may = may_on_cluster(ctx, operation)
        return ErrorCode.NONE if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE
