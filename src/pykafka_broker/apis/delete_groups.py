"""DeleteGroups (API key 42): forget empty groups and their offsets.

v1 as v0, v2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_groups
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    DeleteGroupsRequest,
    versions="0-2",
    needs=[on_groups(AclOperation.DELETE)],
)
async def delete_groups(request: DeleteGroupsRequest, ctx: RequestContext) -> DeleteGroupsResponse:
    """Delete each group named, once."""
    names = dict.fromkeys(request.groups_names)
    results = [(name, await ctx.node.groups.administration.delete(name)) for name in names]
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group, error_code=int(error)) for group, error in results]
    )
