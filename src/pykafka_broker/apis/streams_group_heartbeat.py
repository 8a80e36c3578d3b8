"""StreamsGroupHeartbeat (API key 88): a thread of a Kafka Streams application joins, stays in and leaves a
group whose tasks the broker assigns (KIP-1071).

v0 flexible. Served if the feature streams.version is finalized and `group.coordinator.rebalance.protocols`
has "streams".

The internal topics of the application are created for the member, which needs the authorization. The answer
does not wait for them: it says that they are missing and, if they cannot be created, why. As in Apache Kafka
no topic is created if the member may not create one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_topics, may_on_cluster
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.streams_groups import serves_streams_groups, topics_of
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS, why_invalid_name
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.streams.endpoints import EndpointPartitions, TopicPartitions
from pykafka_broker.coordinator.groups.core.streams.events import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
    TaskList,
)
from pykafka_broker.coordinator.groups.core.streams.state import Endpoint
from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.topology import declared
from pykafka_broker.machine.shard import NO_TOKEN
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages import streams_group_heartbeat as m
from pykafka_broker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: The most failed topics that a status names; the number of the others follows.
SHOWN_ERRORS = 3
#: The heartbeat intervals for which a creation's error is reported; then it is tried again.
INTERVALS_OF_ERRORS = 2


def failed(_request: StreamsGroupHeartbeatRequest, error: KafkaError) -> StreamsGroupHeartbeatResponse:
    """The answer to a request that failed as a whole."""
    return _response(StreamsGroupHeartbeatResult(error.code))


@handles(
    StreamsGroupHeartbeatRequest,
    versions="0",
    needs=[
        on_groups(AclOperation.READ).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
        partly_on_cluster(AclOperation.CREATE).asked_by_handler()
        | on_topics(AclOperation.CREATE).asked_by_handler(),
    ],
    error_response=failed,
)
async def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, ctx: RequestContext
) -> StreamsGroupHeartbeatResponse:
    """The coordinator answers at once; the answer has tasks only if they are new."""
    if not serves_streams_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if denied_groups(ctx, AclOperation.READ, (request.group_id,)):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is not None:
        refusal = _refusal_of_topics(topics_of(request.topology.subtopologies), ctx)
        if refusal is not None:
            return _response(refusal)
    groups = ctx.node.groups
    result = await groups.answer(
        request.group_id,
        lambda token: _event(request, ctx, token),
        refused=lambda error: refusals.streams_group_heartbeat(_event(request, ctx, NO_TOKEN), error),
    )
    if result.internal_topics:
        result = result._replace(statuses=_after_creation(result, ctx))
    return _response(result)


def _refusal_of_topics(names: list[str], ctx: RequestContext) -> StreamsGroupHeartbeatResult | None:
    """The error of the topics of a topology, independent of the group; else None."""
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        return StreamsGroupHeartbeatResult(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    invalid = [name for name in names if why_invalid_name(name) is not None]
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        return StreamsGroupHeartbeatResult(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    if denied_topics(ctx, AclOperation.DESCRIBE, names):
        return StreamsGroupHeartbeatResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


# ---- internal topics ----


def _after_creation(result: StreamsGroupHeartbeatResult, ctx: RequestContext) -> tuple[Status, ...]:
    """Begin to create the internal topics; the statuses, with the errors of their creation."""
    names = [topic.name for topic in result.internal_topics]
    if not may_on_cluster(ctx, AclOperation.CREATE, is_attempt=False):
        kept = denied_topics(ctx, AclOperation.CREATE, names)
        denied = [name for name in names if name in kept]
        if denied:
            return _with_detail(result.statuses, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
    errors = ctx.node.topic_creation.create_for_streams(
        result.internal_topics, errors_for_ms=INTERVALS_OF_ERRORS * result.heartbeat_interval_ms
    )
    if not errors:
        return result.statuses
    told = ", ".join(f"{name} ({error})" for name, error in list(errors.items())[:SHOWN_ERRORS])
    more = len(errors) - SHOWN_ERRORS
    told += f" and {more} more" if more > 0 else ""
    return _with_detail(result.statuses, f"Creation failed: {told}.")


def _with_detail(statuses: Iterable[Status], detail: str) -> tuple[Status, ...]:
    return tuple(
        status._replace(detail=f"{status.detail}; {detail}")
        if status.code is StatusCode.MISSING_INTERNAL_TOPICS
        else status
        for status in statuses
    )


# ---- from the request, and to the answer ----


def _event(request: StreamsGroupHeartbeatRequest, ctx: RequestContext, token: int) -> StreamsGroupHeartbeat:
    endpoint, tags = request.user_endpoint, request.client_tags
    return StreamsGroupHeartbeat(
        token=token,
        now_ms=ctx.node.groups.now_ms(),
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=ctx.client_id or "",
        client_host=ctx.client_host,
        endpoint_information_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=None if request.topology is None else _topology(request.topology),
        active_tasks=_tasks_from(request.active_tasks),
        standby_tasks=_tasks_from(request.standby_tasks),
        warmup_tasks=_tasks_from(request.warmup_tasks),
        process_id=request.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else tuple((tag.key, tag.value) for tag in tags),
        has_task_offsets=request.task_offsets is not None,
        has_task_end_offsets=request.task_end_offsets is not None,
        shutdown_application=request.shutdown_application,
    )


def _topology(topology: m.Topology) -> declared.Topology:
    return declared.Topology(
        topology.epoch,
        tuple(
            declared.Subtopology(
                part.subtopology_id,
                tuple(part.source_topics),
                tuple(part.source_topic_regex),
                tuple(map(_internal_topic, part.state_changelog_topics)),
                tuple(part.repartition_sink_topics),
                tuple(map(_internal_topic, part.repartition_source_topics)),
                tuple(
                    declared.CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ),
            )
            for part in topology.subtopologies
        ),
    )


def _internal_topic(topic: m.TopicInfo) -> declared.InternalTopic:
    configs = tuple((config.key, config.value) for config in topic.topic_configs)
    return declared.InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _tasks_from(tasks: list[m.TaskIds] | None) -> TaskList | None:
    if tasks is None:
        return None
    return tuple((each.subtopology_id, tuple(each.partitions)) for each in tasks)


def _response(result: StreamsGroupHeartbeatResult) -> StreamsGroupHeartbeatResponse:
    tasks, endpoints = result.tasks, result.endpoints
    return StreamsGroupHeartbeatResponse(
        error_code=int(result.error_code),
        error_message=result.error_message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        acceptable_recovery_lag=0,
        task_offset_interval_ms=0,
        status=[
            m.Status(status_code=int(status.code), status_detail=status.detail) for status in result.statuses
        ],
        active_tasks=None if tasks is None else _task_ids(tasks.active),
        standby_tasks=None if tasks is None else _task_ids(tasks.standby),
        warmup_tasks=None if tasks is None else _task_ids(tasks.warmup),
        endpoint_information_epoch=result.endpoint_information_epoch,
        partitions_by_user_endpoint=None if endpoints is None else list(map(_endpoint, endpoints)),
    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[m.TaskIds]:
    """Tasks in the order of Apache Kafka's hash map of subtopologies."""
    return [
        m.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in walked(tasks, string_hash)
    ]


def _endpoint(told: EndpointPartitions) -> m.EndpointToPartitions:
    return m.EndpointToPartitions(
        user_endpoint=m.Endpoint(host=told.endpoint.host, port=told.endpoint.port),
        active_partitions=list(map(_partitions, told.active)),
        standby_partitions=list(map(_partitions, told.standby)),
    )


def _partitions(told: TopicPartitions) -> m.TopicPartition:
    topic, partitions = told
    return m.TopicPartition(topic=topic, partitions=list(partitions))
