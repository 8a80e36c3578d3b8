"""The entry into the core: hands each event to the file, or the kind of group, that handles it."""

from __future__ import annotations

from typing import Any, assert_never, cast, get_args

from pykafka_broker.coordinator.groups.core import (
    admin,
    deletion,
    following,
    forgetting,
    offsets,
    transactional_offsets,
)
from pykafka_broker.coordinator.groups.core.classic import join
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    AssignmentRefused,
    ClassicRequest,
    CommitOffsets,
    CommitTransactionalOffsets,
    CommonEvent,
    CompleteTransaction,
    DeleteGroup,
    DeleteOffsets,
    DeletionRefused,
    Event,
    FetchOffsets,
    JoinGroup,
    ListGroups,
    Loaded,
    RegexesResolved,
    SyncGroup,
    TimerFired,
    TopicsChanged,
    TopicsDeleted,
)
from pykafka_broker.coordinator.groups.core.kind import TimerHandler
from pykafka_broker.coordinator.groups.core.kinds import KIND_OF_EVENT, KINDS, kind_of
from pykafka_broker.coordinator.groups.core.share.events import (
    ShareOutcomeRefused,
    ShareStateDeleted,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.machine.step import Effect, SetTimer, Step
from pykafka_broker.protocol.errors import KafkaError

#: The timer of the search for offsets that are too old.
EXPIRY_TIMER = ("expiry",)

#: The handlers of a group's timers, by the first part of the key; the rest names group and member.
TIMERS: dict[object, TimerHandler] = {
    name: handler for kind in KINDS.values() for name, handler in kind.timers.items()
}
CLASSIC_REQUESTS = frozenset(get_args(ClassicRequest))


def transition(groups: Groups, event: Event, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Handle `event`."""
    event_type, known = type(event), cast(Any, event)
    if groups.deletions and event_type in deletion.REQUESTS and known.group_id in groups.deletions:
        return deletion.on_request(groups, event)
    kind = KIND_OF_EVENT.get(event_type)
    if kind is None:
        return _for_all_kinds(groups, known, config)
    if event_type in CLASSIC_REQUESTS:
        step = _by_another_kind(groups, known, config)
        if step is not None:
            return step
    elif event_type in kind.outcomes:
        deleted = kind.deletion_goes_on(event)
        if deleted is not None:
            return deletion.on_deleted_first(groups, deleted)
    return kind.handle(groups, event, config)


def refused_event(event: Event, error: KafkaError) -> Event | None:
    """The event that follows if the log has refused the records of `event`; None if only its sender waits for
    them. `error` has the code for clients.
    """
    if isinstance(event, TimerFired) and isinstance(event.key, tuple) and event.key[0] == deletion.TIMER:
        return DeletionRefused(event.key[1], event.now_ms, error)
    if isinstance(event, (ShareStateInitialized, ShareStateDeleted)) and event.work.token is not None:
        return ShareOutcomeRefused(event, error)
    if isinstance(event, RegexesResolved):
        return event._replace(resolved=None)  # as if the search had failed: a later heartbeat asks again
    if isinstance(event, SyncGroup):
        return AssignmentRefused(event.token, event.now_ms, event.group_id, error.code)
    return None


def _for_all_kinds(groups: Groups, event: CommonEvent, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Handle an event for groups of all kinds; the frequent events come first."""
    match event:
        case CommitOffsets():
            return offsets.on_commit(groups, event, config)
        case FetchOffsets():
            return offsets.on_fetch(groups, event)
        case CommitTransactionalOffsets():
            return transactional_offsets.on_commit(groups, event, config)
        case CompleteTransaction():
            return transactional_offsets.on_end(groups, event)
        case TimerFired():
            return _on_timer(groups, event, config)
        case ListGroups():
            return admin.on_list(groups, event)
        case DeleteGroup():
            return deletion.on_delete(groups, event)
        case DeletionRefused():
            return deletion.on_refused(groups, event)
        case DeleteOffsets():
            return forgetting.on_delete_offsets(groups, event)
        case TopicsChanged():
            return following.on_topics_changed(groups, event)
        case TopicsDeleted():
            return following.on_topics_deleted(groups, event)
        case Loaded():
            return _on_loaded(groups, event, config)
        case _:
            assert_never(event)


# ---- the classic protocol ----


def _by_another_kind(
    groups: Groups, event: ClassicRequest, config: GroupCoordinatorConfig
) -> Step[Groups] | None:
    """Answer a classic request to a group of another kind; None: handle it like one to a classic group."""
    group = groups.groups.get(event.group_id)
    if group is None:
        return None
    kind = kind_of(group)
    if isinstance(event, JoinGroup) and kind.gives_way_to_classic and kind.is_empty(group):
        return _join_instead_of(groups, group, event, config)
    return kind.handle_classic(groups, group, event, config)


def _join_instead_of(
    groups: Groups, empty: Group, event: JoinGroup, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A client joins an empty group with the classic protocol: a classic group replaces it."""
    step = join.on_join(groups.without_group(empty.group_id), event, config)
    if not step.records:
        return Step(groups, effects=step.effects)
    return step._replace(records=(*kind_of(empty).tombstones(empty), *step.records))


# ---- timers and loads ----


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
    """Check the next groups for expired offsets; a new search begins with all groups."""
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
