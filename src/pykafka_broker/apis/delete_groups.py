"""DeleteGroups (API key 42): delete empty groups and their offsets.

v1 as v0, v2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups
from pykafka_broker.apis.needs import on_groups
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import GROUPS, tell
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.shards import let_others_run
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    """The answer to a request that failed as a whole."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=name, error_code=int(error.code)) for name in request.groups_names
        ]
    )


@handles(
    DeleteGroupsRequest,
    versions="0-2",
    needs=[on_groups(AclOperation.DELETE).asked_by_handler()],
    error_response=failed,
)
async def delete_groups(request: DeleteGroupsRequest, ctx: RequestContext) -> DeleteGroupsResponse:
    """Delete each group once; groups that the client may not delete come last."""
    names = dict.fromkeys(request.groups_names)
    kept = denied_groups(ctx, AclOperation.DELETE, names)
    results = [
        DeletableGroupResult(group_id=name, error_code=int(await _delete(name, ctx)))
        for name in names
        if name not in kept
    ]
    gone = (result.group_id for result in results if not result.error_code)
    tell(ctx, GROUPS, "The following groups were deleted: ", gone)
    error_code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    results += [DeletableGroupResult(group_id=name, error_code=error_code) for name in names if name in kept]
    return DeleteGroupsResponse(results=results)


async def _delete(group_id: str, ctx: RequestContext) -> ErrorCode:
    error = await ctx.node.groups.answer(
        group_id, lambda token: events.DeleteGroup(token, group_id), refused=refusals.delete
    )
    await let_others_run()  # a request may name thousands of groups
    return error
