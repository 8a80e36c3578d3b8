"""ListGroups (API key 16): the groups this broker coordinates.

v1 throttling, v3 flexible, v4 state filter (KIP-518), v5 type filter (KIP-848).
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, may_on_cluster
from pykafka_broker.apis.needs import on_groups, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    """The answer to a request that failed as a whole."""
    return ListGroupsResponse(error_code=int(error.code), groups=[])


@handles(
    ListGroupsRequest,
    versions="0-5",
    needs=[
        partly_on_cluster(AclOperation.DESCRIBE).asked_by_handler()
        | on_groups(AclOperation.DESCRIBE).asked_by_handler()
    ],
    error_response=failed,
)
async def list_groups(request: ListGroupsRequest, ctx: RequestContext) -> ListGroupsResponse:
    """List the groups that match both filters; an empty filter matches all. A client that may describe the
    cluster sees all of them, other clients those that they may describe.
    """
    states, types = tuple(request.states_filter), tuple(request.types_filter)
    error, groups = await ctx.node.groups.list_all(lambda token: events.ListGroups(token, states, types))
    hidden: Set[str] = frozenset()
    if not may_on_cluster(ctx, AclOperation.DESCRIBE, is_attempt=False):
        names = (group.group_id for group in groups)
        hidden = denied_groups(ctx, AclOperation.DESCRIBE, names, is_attempt=False)
    return ListGroupsResponse(
        error_code=int(error),
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.group_type,
            )
            for group in groups
            if group.group_id not in hidden
        ],
    )
