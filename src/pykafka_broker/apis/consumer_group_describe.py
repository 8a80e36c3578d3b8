"""ConsumerGroupDescribe (API key 69): state, members and assignments of consumer groups (KIP-848).

v0 flexible, v1 whether a member uses the classic or the consumer protocol. Groups of another kind get
GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.consumer_groups import serves_consumer_groups
from pykafka_broker.apis.denials import HIDDEN_TOPICS, denied_topics, describe_each, tell_operations
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def failed(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    """The answer to a request that failed as a whole."""
    described = [events.DescribedConsumerGroup(error.code, group_id) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(groups=[_group(group) for group in described])


@handles(
    ConsumerGroupDescribeRequest,
    versions="0-1",
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, ctx: RequestContext
) -> ConsumerGroupDescribeResponse:
    """Describe each group; groups that the client may not describe come first. A group with topics that the
    client may not describe is refused, too.
    """
    if serves_consumer_groups(ctx):
        described = await describe_each(
            request.group_ids, ctx, partial(_described, ctx=ctx), events.DescribedConsumerGroup
        )
    else:
        error = ErrorCode.UNSUPPORTED_VERSION
        described = [
            events.DescribedConsumerGroup(error, group_id, error.message) for group_id in request.group_ids
        ]
    answers = [_group(group) for group in described]
    if request.include_authorized_operations:
        tell_operations(answers, ctx)
    return ConsumerGroupDescribeResponse(groups=answers)


def _visible(group: events.DescribedConsumerGroup, ctx: RequestContext) -> events.DescribedConsumerGroup:
    names = {
        name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for _, name, _ in assignment
    }
    if not denied_topics(ctx, AclOperation.DESCRIBE, sorted(names)):
        return group
    return events.DescribedConsumerGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, group.group_id, HIDDEN_TOPICS)


async def _described(group_id: str, ctx: RequestContext) -> events.DescribedConsumerGroup:
    if not group_id:
        return events.DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID, group_id)
    group = await ctx.node.groups.answer(
        group_id,
        lambda token: events.DescribeConsumerGroup(token, group_id),
        refused=lambda error: refusals.describe_consumer_group(group_id, error),
    )
    return _visible(group, ctx)


def _group(group: events.DescribedConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=int(group.error),
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                member_epoch=member.member_epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=list(member.subscribed_topic_names),
                subscribed_topic_regex=member.subscribed_topic_regex,
                assignment=_assignment(member.assignment),
                target_assignment=_assignment(member.target_assignment),
                member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
            )
            for member in group.members
        ],
        authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _assignment(partitions: events.DescribedPartitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=list(numbers))
            for topic_id, name, numbers in partitions
        ]
    )
