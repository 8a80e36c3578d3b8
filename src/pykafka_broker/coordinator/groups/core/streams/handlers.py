"""Finds the streams group of a request or a timer among a shard's groups, and stores its new state."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.records import group_tombstone
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.streams import heartbeat, leaving, target
from pykafka_broker.coordinator.groups.core.streams.checks import check_heartbeat
from pykafka_broker.coordinator.groups.core.streams.describe import described
from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribedStreamsGroup,
    DescribeStreamsGroup,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
)
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.turn import GroupStep
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.epochs import JOIN_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def on_heartbeat(
    groups: Groups, event: StreamsGroupHeartbeat, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Answer a heartbeat. A member that joins may make the group, also in place of an empty classic one."""
    group_id = event.group_id
    known = groups.groups.get(group_id)
    group = known if isinstance(known, StreamsGroup) else None
    replaced: tuple[Record, ...] = ()
    if known is not None and group is None:
        if event.member_epoch != JOIN_EPOCH or not _gives_way(known):
            return _refused(groups, event)
        replaced = (group_tombstone(group_id),)
    settings = config.streams_settings(group_id)
    step = heartbeat.on_heartbeat(group, event, groups.topics, settings, replaced)
    return put_back(groups, group, step)


def _gives_way(known: object) -> bool:
    return isinstance(known, ClassicGroup) and known.phase is Phase.EMPTY


def _refused(groups: Groups, event: StreamsGroupHeartbeat) -> Step[Groups]:
    """The group is of another kind; errors of the request itself come first."""
    try:
        check_heartbeat(event)
        error = _of_another_kind(event.group_id)
    except KafkaError as failure:
        error = failure
    return refuse(groups, event.token, StreamsGroupHeartbeatResult(error.code, error.explanation))


def _of_another_kind(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")


def on_describe(groups: Groups, event: DescribeStreamsGroup) -> Step[Groups]:
    """Describe a group."""
    group = groups.groups.get(event.group_id)
    if isinstance(group, StreamsGroup):
        return refuse(groups, event.token, described(group))
    error = _of_another_kind(event.group_id)
    if group is None:
        error = KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {event.group_id} not found.")
    missing = DescribedStreamsGroup(event.group_id, error=error.code, error_message=error.explanation)
    return refuse(groups, event.token, missing)


# ---- timers ----


def on_session_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member was silent for its session timeout."""
    group, settings = groups.streams(group_id), config.streams_settings(group_id)
    step = leaving.on_session_timer(group, member_id, groups.topics, settings, now_ms)
    return put_back(groups, group, step)


def on_revocation_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member's rebalance timeout to revoke tasks is over."""
    group, settings = groups.streams(group_id), config.streams_settings(group_id)
    step = leaving.on_revocation_timer(group, member_id, groups.topics, settings, now_ms)
    return put_back(groups, group, step)


def on_initial_rebalance_timer(
    groups: Groups, group_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """The first assignment of a group has waited long enough for more members."""
    group, settings = groups.streams(group_id), config.streams_settings(group_id)
    step = target.on_initial_rebalance_timer(group, groups.topics, settings, now_ms)
    return put_back(groups, group, step)


def put_back(groups: Groups, before: StreamsGroup | None, step: GroupStep) -> Step[Groups]:
    """The step of one group as a step of all groups."""
    after = step.state
    state = groups if after is None or after is before else groups.with_group(after)
    return Step(state, step.records, step.effects)
