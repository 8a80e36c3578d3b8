"""SyncGroup: a member of a classic group asks for its assignment; the leader brings those of all members.

KIP-559 (protocol type and name). If a member repeats its request, the parked one is answered with
REBALANCE_IN_PROGRESS; Apache Kafka drops it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.coordinator.groups.core.classic.rebalance import prepare_rebalance
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Member, Phase
from pykafka_broker.coordinator.groups.core.classic.turn import Turn, sender_error, sync_timer
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    AssignmentRefused,
    SyncGroup,
    SyncResult,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode


def on_sync(groups: Groups, event: SyncGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Followers wait; the leader's assignment is stored when it comes, and then all members are answered."""

    def reject(error: ErrorCode) -> Step[Groups]:
        return refuse(groups, event.token, SyncResult(error))

    group = groups.classic(event.group_id)
    if group is None or group.phase is Phase.EMPTY:
        return reject(ErrorCode.UNKNOWN_MEMBER_ID)
    error = sender_error(group, event.member_id, event.group_instance_id, event.generation)
    if error is not ErrorCode.NONE:
        return reject(error)
    if _contradicts(event.protocol_type, group.protocol_type) or _contradicts(
        event.protocol_name, group.protocol_name
    ):
        return reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.phase is Phase.PREPARING_REBALANCE:
        return reject(ErrorCode.REBALANCE_IN_PROGRESS)

    turn = Turn(group, event.now_ms, config)
    if event.member_id in group.unsynced:
        turn.group = group._replace(unsynced=group.unsynced - {event.member_id})
        if not turn.group.unsynced:
            turn.cancel_timer(sync_timer(group.group_id))
    if group.phase is Phase.STABLE:
        turn.reply(event.token, synced(group, group.members[event.member_id]))
        return turn.step(groups)
    turn.reply(group.syncing.get(event.member_id), SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    turn.group = turn.group._replace(syncing={**group.syncing, event.member_id: event.token})
    if event.member_id == group.leader_id:
        _assign(turn, dict(event.assignments))
    return turn.step(groups)


def _contradicts(claimed: str | None, known: str | None) -> bool:
    return claimed is not None and known is not None and claimed != known


def _assign(turn: Turn, assignments: Mapping[str, bytes]) -> None:
    """Store the leader's assignments. Members that it left out get an empty one."""
    waiting = turn.group.syncing
    members = {
        name: member._replace(assignment=assignments.get(name, b""))
        for name, member in turn.group.members.items()
    }
    # As in Apache Kafka the record says when the generation began, not when it was assigned.
    turn.group = turn.group._replace(members=members, syncing={}, phase=Phase.STABLE)
    turn.write_group()
    for member_id, token in waiting.items():
        turn.reply(token, synced(turn.group, members[member_id]))
        turn.reset_session(members[member_id])


def on_refused(groups: Groups, event: AssignmentRefused, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Answer all members that wait for an assignment which could not be stored; they join again."""
    group = groups.classic(event.group_id)
    if group is None or group.phase is not Phase.COMPLETING_REBALANCE:
        return refuse(groups, event.token, SyncResult(event.error))
    turn = Turn(group._replace(syncing={}), event.now_ms, config)
    assert group.leader_id is not None
    for member_id, token in {**group.syncing, group.leader_id: event.token}.items():
        turn.reply(token, SyncResult(event.error))
        turn.reset_session(group.members[member_id])
    prepare_rebalance(turn)
    return turn.step(groups)


def synced(group: ClassicGroup, member: Member) -> SyncResult:
    """The answer with the assignment of a member."""
    return SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)
