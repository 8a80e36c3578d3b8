"""The entry into the core: hands each event to the file that handles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from pykafka_broker.coordinator.group import admin, deletion, forgetting, offsets, transactional_offsets
from pykafka_broker.coordinator.group.classic import describe as classic_describe
from pykafka_broker.coordinator.group.classic import heartbeat as classic_heartbeat
from pykafka_broker.coordinator.group.classic import join, leave, rebalance, sync
from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.consumer import (
    classic_members,
    describe,
    follow_topics,
    heartbeat,
    migration,
    regexes,
)
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.events import (
    AssignmentRefused,
    CommitOffsets,
    CommitTransactionalOffsets,
    ConsumerGroupHeartbeat,
    DeleteGroup,
    DeleteOffsets,
    DeletionRefused,
    DescribeConsumerGroup,
    DescribeGroup,
    EndTransaction,
    Event,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Loaded,
    RegexesResolved,
    SyncGroup,
    TimerFired,
    TopicsChanged,
    TopicsDeleted,
)
from pykafka_broker.coordinator.group.kinds import kind_of
from pykafka_broker.coordinator.group.state import Groups
from pykafka_broker.machine.step import Effect, SetTimer, Step

#: The timer of the search for offsets that are too old.
EXPIRY_TIMER = ("expiry",)


#: The handlers of a group's timers, by the first part of the key; the rest names group and member.
TIMERS: dict[object, Callable[..., Step[Groups]]] = {
    "session": rebalance.on_session_timer,
    "join": rebalance.on_join_timer,
    "sync": rebalance.on_sync_timer,
    "consumer-session": heartbeat.on_session_timer,
    "consumer-join": heartbeat.on_session_timer,
    "consumer-sync": heartbeat.on_session_timer,
    "consumer-revocation": heartbeat.on_revocation_timer,
}


def transition(groups: Groups, event: Event, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Handle `event`; the frequent events come first."""
    if groups.deletions and isinstance(event, deletion.Request) and event.group_id in groups.deletions:
        return deletion.on_request(groups, event)
    match event:
        case CommitOffsets():
            return offsets.on_commit(groups, event, config)
        case Heartbeat() | JoinGroup() | SyncGroup() | LeaveGroup():
            group = groups.groups.get(event.group_id)
            if isinstance(group, ConsumerGroup):
                return _from_classic_member(groups, group, event, config)
            return _in_classic_group(groups, event, config)
        case ConsumerGroupHeartbeat():
            return heartbeat.on_heartbeat(groups, event, config)
        case FetchOffsets():
            return offsets.on_fetch(groups, event)
        case CommitTransactionalOffsets():
            return transactional_offsets.on_commit(groups, event, config)
        case EndTransaction():
            return transactional_offsets.on_end(groups, event)
        case TimerFired():
            return _on_timer(groups, event, config)
        case AssignmentRefused():
            return sync.on_refused(groups, event, config)
        case ListGroups():
            return admin.on_list(groups, event)
        case DescribeGroup():
            return classic_describe.on_describe(groups, event)
        case DescribeConsumerGroup():
            return describe.on_describe(groups, event, config)
        case DeleteGroup():
            return deletion.on_delete(groups, event)
        case DeleteOffsets():
            return forgetting.on_delete_offsets(groups, event)
        case TopicsDeleted():
            return forgetting.on_topics_deleted(groups, event)
        case DeletionRefused():
            return deletion.on_refused(groups, event)
        case TopicsChanged():
            return follow_topics.on_topics_changed(groups, event)
        case RegexesResolved():
            return regexes.on_regexes_resolved(groups, event, config)
        case Loaded():
            return _on_loaded(groups, event, config)
        case _:
            assert_never(event)


def _in_classic_group(
    groups: Groups, event: Heartbeat | JoinGroup | SyncGroup | LeaveGroup, config: GroupCoordinatorConfig
) -> Step[Groups]:
    match event:
        case Heartbeat():
            return classic_heartbeat.on_heartbeat(groups, event)
        case JoinGroup():
            return join.on_join(groups, event, config)
        case SyncGroup():
            return sync.on_sync(groups, event, config)
        case LeaveGroup():
            return leave.on_leave(groups, event, config)
        case _:
            assert_never(event)


def _from_classic_member(
    groups: Groups,
    group: ConsumerGroup,
    event: Heartbeat | JoinGroup | SyncGroup | LeaveGroup,
    config: GroupCoordinatorConfig,
) -> Step[Groups]:
    match event:
        case Heartbeat():
            return classic_members.on_heartbeat(groups, group, event, config)
        case JoinGroup():
            if not group.members:
                return migration.join_instead_of(groups, group, event, config)
            return classic_members.on_join(groups, group, event, config)
        case SyncGroup():
            return classic_members.on_sync(groups, group, event, config)
        case LeaveGroup():
            return classic_members.on_leave(groups, group, event, config)
        case _:
            assert_never(event)


def _on_timer(groups: Groups, event: TimerFired, config: GroupCoordinatorConfig) -> Step[Groups]:
    assert isinstance(event.key, tuple), event.key
    name, *whose = event.key
    if name == EXPIRY_TIMER[0]:
        return _expire_some(groups, event, config)
    if name == forgetting.DELETED_TOPICS_TIMER[0]:
        return forgetting.on_deleted_topics_timer(groups)
    if name == deletion.TIMER:
        return deletion.on_timer(groups, whose[0], config, transition)
    return TIMERS[name](groups, *whose, event.now_ms, config)


def _expire_some(groups: Groups, event: TimerFired, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Look at the next groups for offsets that are too old; a new search begins with all of them."""
    waiting = groups.expiry_backlog or tuple(groups.groups)
    size = forgetting.expiry_slice(groups, waiting)
    state, records, unfinished = forgetting.expire(groups, waiting[:size], event.now_ms, config)
    later = (*unfinished, *waiting[size:])
    if later != state.expiry_backlog:
        state = state._replace(expiry_backlog=later)
    delay_ms = 0 if later else config.offsets_retention_check_interval_ms
    return Step(state, records, (SetTimer(EXPIRY_TIMER, event.now_ms + delay_ms),))


def _on_loaded(groups: Groups, event: Loaded, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Start the sessions of all members, and the search for old offsets."""
    state = groups
    effects: list[Effect] = [
        SetTimer(EXPIRY_TIMER, event.now_ms + config.offsets_retention_check_interval_ms)
    ]
    for group in tuple(groups.groups.values()):
        loaded, sessions = kind_of(group).on_loaded(group, event.now_ms, config)
        if loaded is not group:
            state = state.with_group(loaded)
        effects += sessions
    return Step(state, (), tuple(effects))
