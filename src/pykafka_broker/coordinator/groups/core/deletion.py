"""DeleteGroups: deletes an empty group with all its offsets, slice by slice if it has many.

Offsets are deleted first and the group last, as in Apache Kafka. No client sees half a group: requests about
the group wait for the end of the deletion and are then answered in order. Only a broker that ends during a
deletion leaves the rest of the group behind; the deletion is then unanswered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    DeleteGroup,
    DeleteOffsets,
    DeletionRefused,
    Event,
    FetchOffsets,
)
from pykafka_broker.coordinator.groups.core.forgetting import OFFSETS_PER_SLICE, forget, places_of
from pykafka_broker.coordinator.groups.core.kind import DeletedFirst
from pykafka_broker.coordinator.groups.core.kinds import KINDS, kind_of
from pykafka_broker.coordinator.groups.core.record import AnyRecord
from pykafka_broker.coordinator.groups.core.records import after
from pykafka_broker.coordinator.groups.core.state import Deletion, Group, Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import AT_ONCE_MS, Effect, Reply, SetTimer, Start, Step
from pykafka_broker.protocol.errors import ErrorCode

#: The first part of the timer keys of deletions; the second is the group id.
TIMER = "deletion"
#: The pause before a deletion that could not be written is retried.
RETRY_MS = 500

#: Requests about one group.
REQUESTS = frozenset(
    (
        CommitOffsets,
        CommitTransactionalOffsets,
        DeleteGroup,
        DeleteOffsets,
        FetchOffsets,
        *(request for kind in KINDS.values() for request in kind.requests),
    )
)

Transition = Callable[[Groups, Event, GroupCoordinatorConfig], Step[Groups]]


def on_delete(groups: Groups, event: DeleteGroup) -> Step[Groups]:
    """Begin to delete an empty group; most are deleted in one slice.

    State that the group keeps elsewhere is deleted before it.
    """
    group = groups.groups.get(event.group_id)
    error = deletion_error(group)
    if group is None or error is not ErrorCode.NONE:
        return refuse(groups, event.token, error)
    records, work = kind_of(group).deleted_first(group, event.token, groups.topics)
    if not records:
        return _next_slice(groups, event.group_id, Deletion(event.token))
    for record in records:
        changed = after(group, record)
        assert changed is not None
        group = changed
    state = groups.with_group(group)
    if work is not None:
        return Step(state, tuple(records), (Start(work),))
    step = _next_slice(state, event.group_id, Deletion(event.token))
    return step._replace(records=(*records, *step.records))


def on_deleted_first(groups: Groups, outcome: DeletedFirst) -> Step[Groups]:
    """State kept elsewhere is deleted: delete the group, unless a member has joined meanwhile."""
    token, group_id, error = outcome
    if error is ErrorCode.NONE:
        error = deletion_error(groups.groups.get(group_id))
    if error is not ErrorCode.NONE:
        return refuse(groups, token, error)
    return _next_slice(groups, group_id, Deletion(token))


def deletion_error(group: Group | None) -> ErrorCode:
    """Why a group cannot be deleted, or NONE."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if kind_of(group).is_empty(group) else ErrorCode.NON_EMPTY_GROUP


def on_request(groups: Groups, event: Any) -> Step[Groups]:
    """Let a request about a group that is being deleted wait: one of `REQUESTS`."""
    deletion = groups.deletions[event.group_id]
    return Step(_going_on(groups, event.group_id, deletion._replace(waiting=(*deletion.waiting, event))))


def on_timer(
    groups: Groups, group_id: str, config: GroupCoordinatorConfig, transition: Transition
) -> Step[Groups]:
    """Forget the next offsets or, when all are gone, handle the next request that has waited."""
    deletion = groups.deletions[group_id]
    if not deletion.is_done:
        return _next_slice(groups, group_id, deletion)
    event, *later = deletion.waiting
    state, records, effects = transition(_ended(groups, group_id), event, config)
    if not later:
        return Step(state, records, effects)
    # The request may have been to delete the group once more.
    again = state.deletions.get(group_id)
    if again is not None:
        return Step(
            _going_on(state, group_id, again._replace(waiting=(*again.waiting, *later))), records, effects
        )
    state = _going_on(state, group_id, deletion._replace(waiting=tuple(later)))
    return Step(state, records, (*effects, _next(group_id)))


def on_refused(groups: Groups, event: DeletionRefused) -> Step[Groups]:
    """Answer all waiting calls with the error of the log. The deletion is retried: no half group may stay."""
    group_id = event.group_id
    deletion = groups.deletions[group_id]
    if deletion.is_done:
        failed, *later = deletion.waiting
        reply = Reply(failed.token, event.error)
        if not later:
            return Step(_ended(groups, group_id), (), (reply,))
        state = _going_on(groups, group_id, deletion._replace(waiting=tuple(later)))
        return Step(state, (), (reply, _next(group_id)))
    tokens = [] if deletion.token is None else [deletion.token]
    tokens += [waiting.token for waiting in deletion.waiting]
    replies = [Reply(token, event.error) for token in tokens]
    retry = SetTimer((TIMER, group_id), event.now_ms + RETRY_MS)
    return Step(_going_on(groups, group_id, Deletion(None)), (), (*replies, retry))


def _next_slice(groups: Groups, group_id: str, deletion: Deletion) -> Step[Groups]:
    places = places_of(groups, group_id, OFFSETS_PER_SLICE)
    records: list[AnyRecord] = []
    state = forget(groups, group_id, places, records)
    if len(places) == OFFSETS_PER_SLICE:
        return Step(_going_on(state, group_id, deletion), tuple(records), (_next(group_id),))
    group = state.groups.get(group_id)
    if group is not None:  # it may have expired meanwhile
        records += kind_of(group).tombstones(group)
        state = state.without_group(group_id)
    effects: list[Effect] = [] if deletion.token is None else [Reply(deletion.token, ErrorCode.NONE)]
    if deletion.waiting:
        effects.append(_next(group_id))
        state = _going_on(state, group_id, Deletion(None, deletion.waiting, is_done=True))
    else:
        state = _ended(state, group_id)
    return Step(state, tuple(records), tuple(effects))


def _next(group_id: str) -> SetTimer:
    return SetTimer((TIMER, group_id), AT_ONCE_MS)


def _going_on(groups: Groups, group_id: str, deletion: Deletion) -> Groups:
    return groups._replace(deletions={**groups.deletions, group_id: deletion})


def _ended(groups: Groups, group_id: str) -> Groups:
    if group_id not in groups.deletions:
        return groups
    return groups._replace(deletions={key: each for key, each in groups.deletions.items() if key != group_id})
