"""The target of a streams group: the assignor computes it, and the assignments that changed are written."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.heartbeats import is_time_for_a_target
from pykafka_broker.coordinator.groups.core.streams.assignor import ASSIGNOR
from pykafka_broker.coordinator.groups.core.streams.assignor.spec import (
    GroupSpec,
    MemberSpec,
    SubtopologySpec,
)
from pykafka_broker.coordinator.groups.core.streams.records import target_epoch_record, target_record
from pykafka_broker.coordinator.groups.core.streams.state import NO_ASSIGNMENT, StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.topology.configured import ConfiguredTopology
from pykafka_broker.coordinator.groups.core.streams.turn import NUM_STANDBY_REPLICAS, GroupStep, StreamsTurn
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.java_hash import state_walked, string_hash, walked


def update_target(
    turn: StreamsTurn, configured: ConfiguredTopology, configs: dict[str, str]
) -> Status | None:
    """Make a target for the group's epoch if it has none yet. If that has to wait, the status says why."""
    group = turn.group
    if group.is_delayed:
        return _delayed("Assignment delayed due to the configured initial rebalance delay.")
    if group.assignment_epoch >= group.group_epoch:
        return None
    interval_ms = turn.settings.assignment_interval_ms
    if not is_time_for_a_target(group.assignment_timestamp_ms, interval_ms, turn.now_ms):
        return _delayed("Assignment delayed due to the configured assignment interval.")
    # Members in the order of Apache Kafka's hash map, a joining one last.
    order = state_walked(name for name in group.members if name != turn.newcomer)
    order += [turn.newcomer] if turn.newcomer is not None else []
    members = {
        name: MemberSpec(group.members[name].process_id or "", group.target_of(name)) for name in order
    }
    parts = configured.subtopologies if configured.is_ready else None
    spec = GroupSpec(
        members,
        {name: SubtopologySpec(part.task_count, part.is_stateful) for name, part in (parts or {}).items()},
        int(configs.get(NUM_STANDBY_REPLICAS, "0")),
    )
    result = ASSIGNOR(spec)
    # The records are in the order of another hash map.
    targets = {name: result.get(name, NO_ASSIGNMENT) for name in walked(order, string_hash)}
    # Compared before anything is written: an older version of the table would be expensive to read.
    changed = [name for name, target in targets.items() if group.targets.get(name) != target]
    turn.write(
        *(target_record(group.group_id, name, targets[name]) for name in changed),
        target_epoch_record(group.group_id, group.group_epoch, turn.now_ms),
    )
    return None


def on_initial_rebalance_timer(
    group: StreamsGroup | None, topics: TopicDirectory, settings: StreamsGroupSettings, now_ms: int
) -> GroupStep:
    """The first assignment has waited long enough. It uses the settings of the last bump.

    A group that is not delayed is left alone: it has replaced the delayed one.
    """
    if group is None or not group.is_delayed:
        return Step(group)
    turn = StreamsTurn(group, topics, settings, now_ms)
    turn.soft(is_delayed=False)
    view = group.configured
    if group.members and view is not None:
        update_target(turn, view, dict(group.last_assignment_configs))
    return turn.step()


def _delayed(detail: str) -> Status:
    return Status(StatusCode.ASSIGNMENT_DELAYED, detail)
