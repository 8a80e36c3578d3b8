"""The checks of a heartbeat that need no group, and the checks of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.coordinator.groups.core.heartbeats import NOT_GIVEN_MS, check_not_blank, fenced, invalid
from pykafka_broker.coordinator.groups.core.streams.events import StreamsGroupHeartbeat, TaskList
from pykafka_broker.coordinator.groups.core.streams.state import StreamsMember
from pykafka_broker.coordinator.groups.core.streams.topology.configured import ConfiguredSubtopology
from pykafka_broker.protocol.epochs import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def check_heartbeat(event: StreamsGroupHeartbeat) -> None:
    """Refuse what no group could accept, in the order of Apache Kafka's checks.

    Raises:
        KafkaError: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.

    """
    _check_features(event)
    check_not_blank(event.member_id, "MemberId")
    check_not_blank(event.group_id, "GroupId")
    check_not_blank(event.instance_id, "InstanceId")
    check_not_blank(event.rack_id, "RackId")
    if event.member_epoch == JOIN_EPOCH:
        _check_join(event)
    elif event.member_epoch == LEAVE_STATIC_EPOCH:
        _refuse_if(event.instance_id is None, "InstanceId can't be null.")
    elif event.member_epoch < LEAVE_STATIC_EPOCH:
        _refuse_if(True, f"MemberEpoch is {event.member_epoch}, but must be greater than or equal to -2.")
    roles = (event.active_tasks, event.standby_tasks, event.warmup_tasks)
    if any(role is not None for role in roles):
        _refuse_if(None in roles, "If one task-type is non-null, all must be non-null.")
    if event.member_epoch != JOIN_EPOCH:
        _refuse_if(event.topology is not None, "Topology can only be provided when (re-)joining.")


def _check_features(event: StreamsGroupHeartbeat) -> None:
    """Refuse features of KIP-1071 that Kafka 4.3 does not support yet."""
    _refuse_if(event.instance_id is not None, "Static membership is not yet supported.")
    _refuse_if(event.has_task_offsets, "TaskOffsets are not supported yet.")
    _refuse_if(event.has_task_end_offsets, "TaskEndOffsets are not supported yet.")
    _refuse_if(bool(event.warmup_tasks), "WarmupTasks are not supported yet.")
    parts = event.topology.subtopologies if event.topology is not None else ()
    _refuse_if(
        any(part.source_topic_regex for part in parts),
        "Regular expressions for source topics are not supported yet.",
    )


def _check_join(event: StreamsGroupHeartbeat) -> None:
    _refuse_if(
        event.rebalance_timeout_ms == NOT_GIVEN_MS, "RebalanceTimeoutMs must be provided in first request."
    )
    for role, name in (
        (event.active_tasks, "ActiveTasks"),
        (event.standby_tasks, "StandbyTasks"),
        (event.warmup_tasks, "WarmupTasks"),
    ):
        _refuse_if(role is None or len(role) > 0, f"{name} must be empty when (re-)joining.")
    _refuse_if(event.topology is None, "Topology must be non-null when (re-)joining.")
    for part in event.topology.subtopologies if event.topology is not None else ():
        for topic in part.state_changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )


def check_names(event: StreamsGroupHeartbeat) -> None:
    """Refuse duplicate names, as Apache Kafka's maps do.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR, also for a negative epoch of a topology.

    """
    if event.client_tags is not None:
        _once(key for key, _ in event.client_tags)
    if event.topology is not None:
        _once(part.subtopology_id for part in event.topology.subtopologies)
        if event.topology.epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _once(names: Iterable[str]) -> None:
    found = list(names)
    if len(set(found)) < len(found):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def check_epoch(member: StreamsMember, event: StreamsGroupHeartbeat) -> None:
    """A member that lost an answer may repeat the heartbeat in its previous epoch, with assigned tasks only.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.

    """
    received = event.member_epoch
    if received in (JOIN_EPOCH, member.member_epoch):
        return
    if (
        received < member.member_epoch
        and received == member.previous_member_epoch
        and _has_only_assigned(member, event)
    ):
        return
    raise fenced("streams", received, member.member_epoch)


def _has_only_assigned(member: StreamsMember, event: StreamsGroupHeartbeat) -> bool:
    assigned: tuple[Mapping[str, Iterable[int]], ...] = member.assigned
    said = (event.active_tasks, event.standby_tasks, event.warmup_tasks)
    return all(
        listed is not None
        and all(name in role and set(role[name]).issuperset(partitions) for name, partitions in listed)
        for listed, role in zip(said, assigned, strict=True)
    )


def check_tasks(listed: TaskList | None, parts: Mapping[str, ConfiguredSubtopology]) -> None:
    """Check that the tasks of a member exist.

    Raises:
        KafkaError: INVALID_REQUEST.

    """
    for name, partitions in listed or ():
        part = parts.get(name)
        if part is None:
            raise invalid(f"Subtopology {name} does not exist in the topology.")
        for partition in partitions:
            _refuse_if(
                not 0 <= partition < part.task_count,
                f"Task {partition} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                f"{part.task_count}",
            )


def _refuse_if(is_wrong: bool, message: str) -> None:
    if is_wrong:
        raise invalid(message)
