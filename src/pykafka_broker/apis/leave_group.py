"""LeaveGroup (API key 13): members leave a classic group at once, without a session timeout.

v3 several members, by member id or group instance id (KIP-345), v4 flexible, v5 a reason. Before v3 the error
code of the answer is that of its only member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_group_of_request
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import GROUPS, tell
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

BATCHED_VERSION = 3


def failed(_request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    """The answer to a request that failed as a whole."""
    return LeaveGroupResponse(error_code=int(error.code))


@handles(
    LeaveGroupRequest,
    versions="0-5",
    needs=[on_group_of_request(AclOperation.READ)],
    error_response=failed,
)
async def leave_group(request: LeaveGroupRequest, ctx: RequestContext) -> LeaveGroupResponse:
    """Remove the members; the answer has an error code for each."""
    groups = ctx.node.groups
    members: tuple[events.LeavingMember, ...]
    if ctx.version < BATCHED_VERSION:
        members = (events.LeavingMember(request.member_id),)
    else:
        members = tuple(
            events.LeavingMember(member.member_id, member.group_instance_id, member.reason)
            for member in request.members
        )
    result = await groups.answer_named(
        request.group_id,
        lambda token: events.LeaveGroup(token, groups.now_ms(), request.group_id, members),
        refused=refusals.leave,
    )
    # A member that leaves by itself sends its member id.
    sent_away = (m.group_instance_id or "" for m, error in result.members if not error and not m.member_id)
    tell(ctx, GROUPS, f"Members sent away from group {request.group_id}: ", sent_away)
    if ctx.version < BATCHED_VERSION:
        error = result.members[0][1] if result.members and not result.error else result.error
        return LeaveGroupResponse(error_code=int(error))
    return LeaveGroupResponse(
        error_code=int(result.error),
        members=[
            MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=int(error)
            )
            for member, error in result.members
        ],
    )
