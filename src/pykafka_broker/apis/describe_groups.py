"""DescribeGroups (API key 15): state, protocol and members of classic groups.

v1 throttling, v3 authorized operations, v4 static members, v5 flexible, v6 GROUP_ID_NOT_FOUND with a message
(KIP-1043); before v6 an unknown group is in state "Dead", without an error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import describe_each, tell_operations
from pykafka_broker.apis.needs import on_groups
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    """The answer to a request that failed as a whole."""
    refused = (events.DescribedGroup(error.code, group_id) for group_id in request.groups)
    return DescribeGroupsResponse(groups=list(map(_group, refused)))


@handles(
    DescribeGroupsRequest,
    versions="0-6",
    needs=[on_groups(AclOperation.DESCRIBE).asked_by_handler()],
    error_response=failed,
)
async def describe_groups(request: DescribeGroupsRequest, ctx: RequestContext) -> DescribeGroupsResponse:
    """Describe each group; groups that the client may not describe come first."""
    described = await describe_each(request.groups, ctx, partial(_described, ctx=ctx), events.DescribedGroup)
    answers = list(map(_group, described))
    if request.include_authorized_operations:
        tell_operations(answers, ctx)
    return DescribeGroupsResponse(groups=answers)


async def _described(group_id: str, ctx: RequestContext) -> events.DescribedGroup:
    return await ctx.node.groups.answer(
        group_id,
        lambda token: events.DescribeGroup(token, ctx.version, group_id),
        refused=lambda error: refusals.describe(group_id, error),
    )


def _group(group: events.DescribedGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=int(group.error),
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_data,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
        authorized_operations=OPERATIONS_NOT_ASKED,
    )
