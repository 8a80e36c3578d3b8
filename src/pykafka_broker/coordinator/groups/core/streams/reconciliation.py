"""The steps of a member from its tasks to its target: no task is ever twice in a process, and none is active
twice.

    STABLE ── new target ──▶ UNREVOKED_TASKS ── confirmed ──▶ (UNRELEASED_TASKS) ──▶ STABLE
                             asked to give up                 waits for others to
                             tasks                            give up theirs

A member is first told to keep only those of its tasks that are in its target in the same role. Once it
confirms that by naming the ones it has, it moves on to the epoch of the target and gets those of its new
tasks that are free; the others follow when they become free. Each active task carries the epoch in which its
member got it, so that a commit in an older epoch is accepted only if the member had the task then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from pykafka_broker.coordinator.groups.core.streams.state import MemberState, StreamsMember, TaskHolders
from pykafka_broker.coordinator.groups.core.streams.tasks import (
    NO_OWNED_TASKS,
    OwnedTasks,
    TaskId,
    TaskMap,
    Tasks,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple


class Target(NamedTuple):
    """The target of a member, and the processes that have tasks now."""

    assignment_epoch: int
    tasks: Tasks
    holders: TaskHolders


class _Difference(NamedTuple):
    """The tasks that a member keeps, gives up and gets, and whether it has to wait for more."""

    kept: OwnedTasks
    revoked: OwnedTasks
    added: OwnedTasks
    must_wait: bool


def reconciled(member: StreamsMember, target: Target, owned: Tasks | None) -> StreamsMember:
    """The member after its next step towards the target; the same if it has to wait.

    `owned` are the tasks that the member reports, in all roles; None without a report.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, the member must give up everything and join again.

    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch == target.assignment_epoch:
                return member
            return _advance(member, member.member_epoch, target, owned)
        case MemberState.UNREVOKED_TASKS:
            if owned is None or member.pending_revocation.overlaps(owned):
                return member
            return _advance(member, member.member_epoch + 1, target, owned)
        case MemberState.UNRELEASED_TASKS:
            return _advance(member, member.member_epoch, target, owned)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return _advance(member, target.assignment_epoch, target, owned)
        case _:
            assert_never(member.state)


def _advance(member: StreamsMember, member_epoch: int, target: Target, owned: Tasks | None) -> StreamsMember:
    """The tasks that the member may have now, as a step to the target."""
    change = _difference(member, target)
    if change.revoked and (owned is None or change.revoked.overlaps(owned)):
        return _moved(member, member_epoch, MemberState.UNREVOKED_TASKS, change.kept, change.revoked)
    assigned = change.kept.merged(change.added) if change.added else change.kept
    state = MemberState.UNRELEASED_TASKS if change.must_wait else MemberState.STABLE
    return _moved(member, target.assignment_epoch, state, assigned, NO_OWNED_TASKS)


def _difference(member: StreamsMember, target: Target) -> _Difference:
    assigned, tasks, holders, process_id = member.assigned, target.tasks, target.holders, member.process_id

    def is_here(task: TaskId) -> bool:
        """Does the member's process have the task as a standby or warm-up task?"""
        return process_id in holders.standby.get(task, ()) or process_id in holders.warmup.get(task, ())

    def is_held(task: TaskId) -> bool:
        """Does the process have the task, so that no member may get it as a standby or warm-up task?"""
        return (task in holders.active and holders.active[task] == process_id) or is_here(task)

    active_kept: dict[str, dict[int, int]] = {}
    active_revoked: dict[str, dict[int, int]] = {}
    for name, epochs in assigned.active.items():
        wanted = tasks.active.get(name, frozenset())
        for partition, epoch in epochs.items():
            part = active_kept if partition in wanted else active_revoked
            part.setdefault(name, {})[partition] = epoch
    has_active = {name: frozenset(epochs) for name, epochs in active_kept.items()}
    active, active_waits = _missing(
        tasks.active, has_active, lambda task: task in holders.active or is_here(task)
    )
    standby, standby_waits = _missing(tasks.standby, assigned.standby, is_held)
    warmup, warmup_waits = _missing(tasks.warmup, assigned.warmup, is_held)
    added = {name: dict.fromkeys(some, target.assignment_epoch) for name, some in active.items()}
    return _Difference(
        OwnedTasks(active_kept, _both(assigned.standby, tasks.standby), _both(assigned.warmup, tasks.warmup)),
        OwnedTasks(
            active_revoked, _less(assigned.standby, tasks.standby), _less(assigned.warmup, tasks.warmup)
        ),
        OwnedTasks(added, standby, warmup),
        active_waits or standby_waits or warmup_waits,
    )


def _missing(
    wanted: TaskMap, has: TaskMap, is_held: Callable[[TaskId], bool]
) -> tuple[dict[str, frozenset[int]], bool]:
    """The wanted tasks that the member lacks and may get now, and whether others have to wait."""
    free = {}
    must_wait = False
    for name, missing in _less(wanted, has).items():
        held = {partition for partition in missing if is_held(TaskId(name, partition))}
        must_wait = must_wait or bool(held)
        if missing - held:
            free[name] = missing - held
    return free, must_wait


def _both(some: TaskMap, others: TaskMap) -> dict[str, frozenset[int]]:
    shared = {name: partitions & others.get(name, frozenset()) for name, partitions in some.items()}
    return {name: partitions for name, partitions in shared.items() if partitions}


def _less(some: TaskMap, others: TaskMap) -> dict[str, frozenset[int]]:
    left = {name: partitions - others.get(name, frozenset()) for name, partitions in some.items()}
    return {name: partitions for name, partitions in left.items() if partitions}


def _moved(
    member: StreamsMember,
    member_epoch: int,
    state: MemberState,
    assigned: OwnedTasks,
    pending_revocation: OwnedTasks,
) -> StreamsMember:
    return member._replace(
        member_epoch=member_epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
