"""SyncGroup (API key 14): the leader of a generation brings the assignment, everybody fetches their share.

v3 static members, v4 flexible, v5 protocol type and name, which must be those of the generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_group
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    SyncGroupRequest,
    versions="0-5",
    needs=[on_group(AclOperation.READ)],
)
async def sync_group(request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse:
    """Followers wait until the leader has assigned."""
    result = await ctx.node.groups.members.sync(
        version=ctx.version,
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id,
        assignments=[(given.member_id, given.assignment) for given in request.assignments],
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
    )
    return SyncGroupResponse(
        error_code=int(result.error),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
