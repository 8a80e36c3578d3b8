"""StreamsGroupDescribe (API key 89): state, topology, members and tasks of streams groups (KIP-1071).

v0 flexible. Groups of another kind get GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics, describe_each, tell_operations
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.apis.streams_groups import serves_streams_groups, topics_of
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribeStreamsGroup,
)
from pykafka_broker.coordinator.groups.core.streams.topology.declared import InternalTopic, Topology
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages import streams_group_describe as m
from pykafka_broker.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


def failed(request: StreamsGroupDescribeRequest, error: KafkaError) -> StreamsGroupDescribeResponse:
    """The answer to a request that failed as a whole."""
    refused = (_refused(error.code, group_id) for group_id in request.group_ids)
    return StreamsGroupDescribeResponse(groups=list(map(_group, refused)))


@handles(
    StreamsGroupDescribeRequest,
    versions="0",
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def streams_group_describe(
    request: StreamsGroupDescribeRequest, ctx: RequestContext
) -> StreamsGroupDescribeResponse:
    """Describe each group; groups that the client may not describe come first. A group with topics that the
    client may not describe is refused, too.
    """
    if not serves_streams_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    described = await describe_each(request.group_ids, ctx, partial(_described, ctx=ctx), _refused)
    answers = list(map(_group, described))
    if request.include_authorized_operations:
        tell_operations(answers, ctx)
    return StreamsGroupDescribeResponse(groups=answers)


def _refused(error: ErrorCode, group_id: str) -> DescribedStreamsGroup:
    return DescribedStreamsGroup(group_id, error=error)


def _visible(group: DescribedStreamsGroup, ctx: RequestContext) -> DescribedStreamsGroup:
    topology = group.topology
    if topology is None or not denied_topics(ctx, AclOperation.DESCRIBE, topics_of(topology.subtopologies)):
        return group
    return DescribedStreamsGroup(
        group.group_id, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=HIDDEN_TOPICS
    )


async def _described(group_id: str, ctx: RequestContext) -> DescribedStreamsGroup:
    if not group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID, group_id)
    group = await ctx.node.groups.answer(
        group_id,
        lambda token: DescribeStreamsGroup(token, group_id),
        refused=lambda error: refusals.describe_streams_group(group_id, error),
    )
    return _visible(group, ctx)


def _group(group: DescribedStreamsGroup) -> m.DescribedGroup:
    return m.DescribedGroup(
        error_code=int(group.error),
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None if group.topology is None else _topology(group.topology),
        members=list(map(_member, group.members)),
        authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _topology(topology: Topology) -> m.Topology:
    return m.Topology(
        epoch=topology.epoch,
        subtopologies=[
            m.Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=list(part.source_topics),
                repartition_sink_topics=list(part.repartition_sink_topics),
                state_changelog_topics=list(map(_internal_topic, part.state_changelog_topics)),
                repartition_source_topics=list(map(_internal_topic, part.repartition_source_topics)),
            )
            for part in topology.subtopologies
        ],
    )


def _internal_topic(topic: InternalTopic) -> m.TopicInfo:
    return m.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[m.KeyValue(key=key, value=value) for key, value in topic.configs],
    )


def _member(described: DescribedStreamsMember) -> m.Member:
    member, target = described
    endpoint, tags = member.user_endpoint, dict(member.client_tags)
    return m.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id or "",
        user_endpoint=None if endpoint is None else m.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[m.KeyValue(key=key, value=tags[key]) for key in walked(tags, string_hash)],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(*member.assigned),
        target_assignment=_assignment(*target),
        is_classic=False,
    )


def _assignment(
    active: Mapping[str, Iterable[int]],
    standby: Mapping[str, Iterable[int]],
    warmup: Mapping[str, Iterable[int]],
) -> m.Assignment:
    return m.Assignment(
        active_tasks=_task_ids(active), standby_tasks=_task_ids(standby), warmup_tasks=_task_ids(warmup)
    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[m.TaskIds]:
    return [
        m.TaskIds(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in sorted(tasks.items())
    ]
