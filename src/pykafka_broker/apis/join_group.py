"""JoinGroup (API key 11): become a member of a classic group and wait for its next generation.

v1 rebalance timeout, v4 the broker hands out member ids first (KIP-394), v5 static members (KIP-345), v6
flexible, v7 protocol type and null protocol name, v8 a reason, v9 a rejoining leader may skip the assignment
(KIP-814).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups
from pykafka_broker.apis.needs import on_groups
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import Protocol
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def failed(_request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    """The answer to a request that failed as a whole."""
    return JoinGroupResponse(
        error_code=int(error.code), generation_id=-1, protocol_name="", leader="", member_id="", members=[]
    )


@handles(
    JoinGroupRequest,
    versions="0-9",
    needs=[on_groups(AclOperation.READ).asked_by_handler()],
    error_response=failed,
)
async def join_group(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse:
    """The coordinator answers when the group is complete; only the leader's answer lists the members."""
    if denied_groups(ctx, AclOperation.READ, (request.group_id,)):
        return _response(events.JoinResult(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""), ctx)
    groups = ctx.node.groups
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if ctx.version < FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
        rebalance_timeout_ms = request.session_timeout_ms
    protocols = _offered(request)
    result = await groups.answer_named(
        request.group_id,
        lambda token: events.JoinGroup(
            token=token,
            now_ms=groups.now_ms(),
            version=ctx.version,
            group_id=request.group_id,
            member_id=request.member_id,
            client_id=ctx.client_id or "",
            client_host=ctx.client_host,
            principal=ctx.principal,
            uuid=groups.new_uuid(),
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=protocols,
            group_instance_id=request.group_instance_id,
        ),
        refused=partial(refusals.join, request.member_id),
    )
    return _response(result, ctx)


def _response(result: events.JoinResult, ctx: RequestContext) -> JoinGroupResponse:
    protocol_name = result.protocol_name
    if protocol_name is None and ctx.version < FIRST_VERSION_WITH_NULL_PROTOCOL:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=int(result.error),
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=protocol_name,
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


def _offered(request: JoinGroupRequest) -> tuple[Protocol, ...]:
    """The protocols offered, best first, without duplicates."""
    offered: dict[str, Protocol] = {}
    for protocol in request.protocols:
        offered.setdefault(protocol.name, Protocol(protocol.name, bytes(protocol.metadata)))
    return tuple(offered.values())
