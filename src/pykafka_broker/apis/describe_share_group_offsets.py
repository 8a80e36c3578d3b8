"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups, and their lag (KIP-932).

v0 flexible, v1 the lag (KIP-1226). A request without topics asks for all topics in which the group has a
state, and only the group's coordinator can answer it. Any broker answers a request that names topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_topics
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.groups import serves_share_groups
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.share.events import (
    DescribedShareOffsets,
    DescribeShareOffsets,
    ShareOffset,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: DescribeShareGroupOffsetsRequest, error: KafkaError) -> DescribeShareGroupOffsetsResponse:
    """The answer to a request that failed as a whole."""
    described = DescribedShareOffsets(error.code, error.message)
    return DescribeShareGroupOffsetsResponse(
        groups=[_group(group.group_id, described) for group in request.groups]
    )


@handles(
    DescribeShareGroupOffsetsRequest,
    versions="0-1",
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, ctx: RequestContext
) -> DescribeShareGroupOffsetsResponse:
    """Describe each group. Topics that the client may not describe are refused if named, else left out."""
    hidden = denied_groups(ctx, AclOperation.DESCRIBE, (group.group_id for group in request.groups))
    return DescribeShareGroupOffsetsResponse(
        groups=[
            _group(group.group_id, await _described(group, ctx, is_hidden=group.group_id in hidden))
            for group in request.groups
        ]
    )


async def _described(
    group: DescribeShareGroupOffsetsRequestGroup, ctx: RequestContext, *, is_hidden: bool
) -> DescribedShareOffsets:
    if not serves_share_groups(ctx):
        return DescribedShareOffsets(ErrorCode.UNSUPPORTED_VERSION)
    if is_hidden:
        return DescribedShareOffsets(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if group.topics is None:
        every: DescribedShareOffsets = await ctx.node.groups.answer(
            group.group_id,
            lambda token: DescribeShareOffsets(token, group.group_id, None),
            refused=refusals.describe_share_offsets,
        )
        denied = denied_topics(ctx, AclOperation.DESCRIBE, (name for name, _, _ in every.topics))
        return every._replace(topics=tuple(topic for topic in every.topics if topic[0] not in denied))
    if not group.topics:
        return DescribedShareOffsets()
    denied = denied_topics(ctx, AclOperation.DESCRIBE, (topic.topic_name for topic in group.topics))
    visible = tuple(
        (topic.topic_name, tuple(topic.partitions))
        for topic in group.topics
        if topic.topic_name not in denied
    )
    found: DescribedShareOffsets = await ctx.node.groups.answer_anywhere(
        lambda token: DescribeShareOffsets(token, group.group_id, visible)
    )
    if found.error is not ErrorCode.NONE:
        return found
    refused = (_refused(topic) for topic in group.topics if topic.topic_name in denied)
    return found._replace(topics=(*found.topics, *refused))


def _refused(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> tuple[str, bytes, tuple[ShareOffset, ...]]:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = (
        ShareOffset(partition, error=error, error_message=error.message) for partition in topic.partitions
    )
    return topic.topic_name, ZERO_UUID, tuple(refused)


def _group(group_id: str, described: DescribedShareOffsets) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id,
        error_code=int(described.error),
        error_message=described.error_message,
        topics=[
            DescribeShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=topic_id,
                partitions=[
                    DescribeShareGroupOffsetsResponsePartition(
                        partition_index=offset.partition,
                        start_offset=offset.start_offset,
                        leader_epoch=offset.leader_epoch,
                        lag=offset.lag,
                        error_code=int(offset.error),
                        error_message=offset.error_message,
                    )
                    for offset in offsets
                ],
            )
            for name, topic_id, offsets in described.topics
        ],
    )
