"""JoinGroup (API key 11): become a member of a classic group and wait for its next generation.

v1 rebalance timeout, v4 the broker hands out member ids first (KIP-394), v5 static members (KIP-345), v6
flexible, v7 protocol type and null protocol name, v8 a reason, v9 a rejoining leader may skip the assignment
(KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_group
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    JoinGroupRequest,
    versions="0-9",
    needs=[on_group(AclOperation.READ)],
)
async def join_group(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse:
    """The coordinator answers when the group is complete; only the leader learns of the other members."""
    result = await ctx.node.groups.members.join(
        version=ctx.version,
        group_id=request.group_id,
        member_id=request.member_id,
        client_id=ctx.client_id,
        client_host=ctx.connection.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=[(protocol.name, protocol.metadata) for protocol in request.protocols],
        group_instance_id=request.group_instance_id,
    )
    return JoinGroupResponse(
        error_code=int(result.error),
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )
