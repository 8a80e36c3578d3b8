"""Heartbeats of streams groups as requests, and answers in a form that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interop.streams_groups import Json
from pykafka_broker.coordinator.groups.core.streams.events import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
    TaskList,
)
from pykafka_broker.coordinator.groups.core.streams.topology.declared import InternalTopic, Topology
from pykafka_broker.protocol.messages import streams_group_heartbeat as m


def request(event: StreamsGroupHeartbeat) -> m.StreamsGroupHeartbeatRequest:
    """The request that `event` is made of."""
    offsets = [m.TaskOffset(subtopology_id="0", partition=0, offset=1)]
    endpoint, tags = event.user_endpoint, event.client_tags
    return m.StreamsGroupHeartbeatRequest(
        group_id=event.group_id,
        member_id=event.member_id,
        member_epoch=event.member_epoch,
        endpoint_information_epoch=event.endpoint_information_epoch,
        instance_id=event.instance_id,
        rack_id=event.rack_id,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        topology=None if event.topology is None else _topology(event.topology),
        active_tasks=_tasks(event.active_tasks),
        standby_tasks=_tasks(event.standby_tasks),
        warmup_tasks=_tasks(event.warmup_tasks),
        process_id=event.process_id,
        user_endpoint=None if endpoint is None else m.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=None if tags is None else [m.KeyValue(key=key, value=value) for key, value in tags],
        task_offsets=offsets if event.has_task_offsets else None,
        task_end_offsets=offsets if event.has_task_end_offsets else None,
        shutdown_application=event.shutdown_application,
    )


def _topology(topology: Topology) -> m.Topology:
    return m.Topology(
        epoch=topology.epoch,
        subtopologies=[
            m.Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=list(part.source_topics),
                source_topic_regex=list(part.source_topic_regex),
                state_changelog_topics=_topics(part.state_changelog_topics),
                repartition_sink_topics=list(part.repartition_sink_topics),
                repartition_source_topics=_topics(part.repartition_source_topics),
                copartition_groups=[
                    m.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ],
            )
            for part in topology.subtopologies
        ],
    )


def _topics(topics: Iterable[InternalTopic]) -> list[m.TopicInfo]:
    return [
        m.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[m.KeyValue(key=key, value=value) for key, value in topic.configs],
        )
        for topic in topics
    ]


def _tasks(listed: TaskList | None) -> list[m.TaskIds] | None:
    if listed is None:
        return None
    return [m.TaskIds(subtopology_id=name, partitions=list(partitions)) for name, partitions in listed]


def theirs(answer: m.StreamsGroupHeartbeatResponse) -> Json:
    """The answer of a broker. Endpoints are sorted: Apache Kafka lists them in the order of a table."""

    def tasks(listed: Iterable[m.TaskIds] | None) -> Json | None:
        return None if listed is None else {task.subtopology_id: sorted(task.partitions) for task in listed}

    endpoints = answer.partitions_by_user_endpoint
    return {
        "error": (answer.error_code, answer.error_message),
        "member": (answer.member_id, answer.member_epoch),
        "interval": answer.heartbeat_interval_ms,
        "statuses": [(status.status_code, status.status_detail) for status in answer.status or ()],
        "tasks": (tasks(answer.active_tasks), tasks(answer.standby_tasks), tasks(answer.warmup_tasks)),
        "endpoint epoch": answer.endpoint_information_epoch,
        "endpoints": None
        if endpoints is None
        else sorted(
            (
                (each.user_endpoint.host, each.user_endpoint.port),
                sorted((topic.topic, sorted(topic.partitions)) for topic in each.active_partitions),
                sorted((topic.topic, sorted(topic.partitions)) for topic in each.standby_partitions),
            )
            for each in endpoints
        ),
    }


def ours(answer: StreamsGroupHeartbeatResult) -> Json:
    """Our answer, in the same form."""

    def tasks(role: Mapping[str, Iterable[int]]) -> Json:
        return {name: sorted(partitions) for name, partitions in role.items()}

    endpoints = answer.endpoints
    return {
        "error": (int(answer.error_code), answer.error_message),
        "member": (answer.member_id, answer.member_epoch),
        "interval": answer.heartbeat_interval_ms,
        "statuses": [(int(status.code), status.detail) for status in answer.statuses],
        "tasks": (None, None, None) if answer.tasks is None else tuple(map(tasks, answer.tasks)),
        "endpoint epoch": answer.endpoint_information_epoch,
        "endpoints": None
        if endpoints is None
        else sorted(
            (
                tuple(each.endpoint),
                sorted((topic, sorted(partitions)) for topic, partitions in each.active),
                sorted((topic, sorted(partitions)) for topic, partitions in each.standby),
            )
            for each in endpoints
        ),
    }
