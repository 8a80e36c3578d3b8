"""ShareGroupDescribe (API key 77): state, members and assignments of share groups (KIP-932).

v1 is the first served, flexible. Groups of another kind get GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import HIDDEN_TOPICS, denied_topics, describe_each, tell_operations
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.apis.sharing.groups import serves_share_groups
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.share import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: ShareGroupDescribeRequest, error: KafkaError) -> ShareGroupDescribeResponse:
    """The answer to a request that failed as a whole."""
    described = [events.DescribedShareGroup(error.code, group_id) for group_id in request.group_ids]
    return ShareGroupDescribeResponse(groups=[_group(group) for group in described])


@handles(
    ShareGroupDescribeRequest,
    versions="1",
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def share_group_describe(
    request: ShareGroupDescribeRequest, ctx: RequestContext
) -> ShareGroupDescribeResponse:
    """Describe each group; groups that the client may not describe come first. A group with topics that the
    client may not describe is refused, too.
    """
    if not serves_share_groups(ctx):
        return failed(request, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
    described = await describe_each(
        request.group_ids, ctx, partial(_described, ctx=ctx), events.DescribedShareGroup
    )
    answers = [_group(group) for group in described]
    if request.include_authorized_operations:
        tell_operations(answers, ctx)
    return ShareGroupDescribeResponse(groups=answers)


def _visible(group: events.DescribedShareGroup, ctx: RequestContext) -> events.DescribedShareGroup:
    names = {name for member in group.members for _, name, _ in member.assignment}
    if not denied_topics(ctx, AclOperation.DESCRIBE, sorted(names)):
        return group
    return events.DescribedShareGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, group.group_id, HIDDEN_TOPICS)


async def _described(group_id: str, ctx: RequestContext) -> events.DescribedShareGroup:
    if not group_id:
        return events.DescribedShareGroup(ErrorCode.INVALID_GROUP_ID, group_id)
    group = await ctx.node.groups.answer(
        group_id,
        lambda token: events.DescribeShareGroup(token, group_id),
        refused=lambda error: refusals.describe_share_group(group_id, error),
    )
    return _visible(group, ctx)


def _group(group: events.DescribedShareGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=int(group.error),
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(member) for member in group.members],
        authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _member(member: events.DescribedShareMember) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=list(partitions))
                for topic_id, name, partitions in member.assignment
            ]
        ),
    )
