"""The one entry into the core: which event is answered where."""

from __future__ import annotations

from typing import assert_never

from pykafka_broker.coordinator.group import admin, classic, offsets, rebalance
from pykafka_broker.coordinator.group.events import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    DescribeGroup,
    Event,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Loaded,
    SyncGroup,
    TimerFired,
    TopicsDeleted,
)
from pykafka_broker.coordinator.group.state import GroupCoordinatorConfig, Groups
from pykafka_broker.step import Effect, SetTimer, Step

#: The timer of the search for offsets that are too old.
EXPIRY_TIMER = ("expiry",)


def transition(groups: Groups, event: Event, config: GroupCoordinatorConfig) -> Step[Groups]:
    """What `event` does to the groups; the frequent events come first."""
    match event:
        case Heartbeat():
            return classic.on_heartbeat(groups, event)
        case CommitOffsets():
            return offsets.on_commit(groups, event, config)
        case FetchOffsets():
            return offsets.on_fetch(groups, event)
        case JoinGroup():
            return classic.on_join(groups, event, config)
        case SyncGroup():
            return classic.on_sync(groups, event, config)
        case LeaveGroup():
            return classic.on_leave(groups, event, config)
        case TimerFired():
            return _on_timer(groups, event, config)
        case ListGroups():
            return admin.on_list(groups, event)
        case DescribeGroup():
            return admin.on_describe(groups, event)
        case DeleteGroup():
            return admin.on_delete(groups, event)
        case DeleteOffsets():
            return offsets.on_delete_offsets(groups, event)
        case TopicsDeleted():
            return offsets.on_topics_deleted(groups, event)
        case Loaded():
            return _on_loaded(groups, event, config)
        case _:
            assert_never(event)


def _on_timer(groups: Groups, event: TimerFired, config: GroupCoordinatorConfig) -> Step[Groups]:
    match event.key:
        case ("session", str(group_id), str(member_id)):
            return rebalance.on_session_timer(groups, group_id, member_id, event.now_ms, config)
        case ("join", str(group_id)):
            return rebalance.on_join_timer(groups, group_id, event.now_ms, config)
        case ("sync", str(group_id)):
            return rebalance.on_sync_timer(groups, group_id, event.now_ms, config)
        case _:
            assert event.key == EXPIRY_TIMER, event.key
            state, records = offsets.expire(groups, event.now_ms, config)
            return Step(state, records, (_next_expiry(event.now_ms, config),))


def _on_loaded(groups: Groups, event: Loaded, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Start the sessions of all members, and the search for old offsets."""
    state = groups
    effects: list[Effect] = [_next_expiry(event.now_ms, config)]
    for group in tuple(groups.groups.values()):
        turn = rebalance.on_group_loaded(group, event.now_ms, config)
        if turn.group is not group:
            state = state.with_group(turn.group)
        effects.extend(turn.effects)
    return Step(state, (), tuple(effects))


def _next_expiry(now_ms: int, config: GroupCoordinatorConfig) -> SetTimer:
    return SetTimer(EXPIRY_TIMER, now_ms + config.offsets_retention_check_interval_ms)
