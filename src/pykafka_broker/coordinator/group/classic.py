"""The requests of a classic group's members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

KIP-345 (static members, batched leave), KIP-389 (maximum size), KIP-394 (member id handshake), KIP-559
(protocol type and name), KIP-814 (a static leader that comes back need not assign again).

Where Apache Kafka forgets the parked request of a member that sends it once more, or that leaves while its
SyncGroup is parked, the older request is answered here (REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID): nothing
may stay parked for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.coordinator.group.events import (
    Heartbeat,
    JoinGroup,
    JoinResult,
    LeaveGroup,
    LeaveResult,
    LeavingMember,
    SyncGroup,
    SyncResult,
)
from pykafka_broker.coordinator.group.rebalance import (
    UNKNOWN_MEMBER,
    complete_join_if_ready,
    joined,
    prepare_rebalance,
    rebalance_or_complete_join,
    remove_member,
    supporters_after,
    without,
)
from pykafka_broker.coordinator.group.records import new_group_record
from pykafka_broker.coordinator.group.state import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    ClassicGroup,
    GroupCoordinatorConfig,
    Groups,
    Member,
    Phase,
)
from pykafka_broker.coordinator.group.turn import Turn, fenced, refuse, session_timer, sync_timer
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Reply, SetTimer, Step

#: JoinGroup versions from which on a new dynamic member is first given its id and told to come back with it.
FIRST_VERSION_WITH_HANDSHAKE = 4
#: JoinGroup versions from which on a returning static leader can be told not to assign again.
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


# ---- JoinGroup ----


def on_join(groups: Groups, event: JoinGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Take somebody into the next generation; the answer waits until that generation begins."""
    known = groups.classic(event.group_id)
    refusal = join_refusal(event, config)
    if refusal is ErrorCode.NONE and known is None and event.member_id:
        refusal = ErrorCode.UNKNOWN_MEMBER_ID
    if refusal is not ErrorCode.NONE:
        return refuse(groups, event.token, JoinResult(refusal, event.member_id))
    turn = Turn(known or ClassicGroup(event.group_id, phase_began_ms=event.now_ms), event.now_ms, config)
    _join(turn, event)
    if known is None and not turn.records:
        turn.records.append(new_group_record(event.group_id, event.now_ms))
    return turn.step(groups)


def join_refusal(event: JoinGroup, config: GroupCoordinatorConfig) -> ErrorCode:
    """What is wrong with a request whatever the group."""
    if not event.group_id:
        return ErrorCode.INVALID_GROUP_ID
    lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not lowest <= event.session_timeout_ms <= highest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def _join(turn: Turn, event: JoinGroup) -> None:
    if not _has_room(turn, event.member_id):
        remove_member(turn, event.member_id)
        turn.reply(event.token, JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
        # The others may have waited for this one only.
        complete_join_if_ready(turn)
    elif not turn.group.supports(event.protocol_type, event.protocols):
        turn.reply(event.token, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, event.member_id))
    elif event.member_id:
        _join_again(turn, event)
    elif event.group_instance_id is not None:
        member_id = f"{event.group_instance_id}-{event.uuid}"
        predecessor = turn.group.static_members.get(event.group_instance_id)
        if predecessor is None:
            _add_member(turn, event, member_id)
        else:
            _replace_static_member(turn, event, predecessor, member_id)
    else:
        member_id = f"{event.client_id}-{event.uuid}"
        if event.version >= FIRST_VERSION_WITH_HANDSHAKE:
            _give_member_id(turn, event, member_id)
        else:
            _add_member(turn, event, member_id)


def _has_room(turn: Turn, member_id: str) -> bool:
    """May this member join without exceeding group.max.size?

    While everybody joins again, those who have done so count: the last to come are turned away, also when the
    limit was lowered below the number of members. Later, the members count.
    """
    group, limit = turn.group, turn.config.group_max_size
    match group.phase:
        case Phase.EMPTY | Phase.DEAD:
            return True
        case Phase.PREPARING_REBALANCE:
            return member_id in group.joining or len(group.joining) < limit
        case Phase.COMPLETING_REBALANCE | Phase.STABLE:
            return member_id in group.members or len(group.members) < limit


def _give_member_id(turn: Turn, event: JoinGroup, member_id: str) -> None:
    """KIP-394: a client that never sees the answer leaves a name behind, not a member that never syncs."""
    turn.group = turn.group._replace(pending_members=turn.group.pending_members | {member_id})
    turn.set_timer(session_timer(event.group_id, member_id), event.session_timeout_ms)
    turn.reply(event.token, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _join_again(turn: Turn, event: JoinGroup) -> None:
    group, member_id = turn.group, event.member_id
    if member_id in group.pending_members and event.group_instance_id is None:
        _add_member(turn, event, member_id)
        return
    error = fenced(group, member_id, event.group_instance_id)
    if error is not ErrorCode.NONE:
        turn.reply(event.token, JoinResult(error, member_id))
        return
    changed = group.members[member_id].protocols != event.protocols
    match group.phase:
        case Phase.PREPARING_REBALANCE:
            _update_member(turn, event, member_id)
            rebalance_or_complete_join(turn)
        case Phase.COMPLETING_REBALANCE if changed:
            _update_member(turn, event, member_id)
            rebalance_or_complete_join(turn)
        case Phase.STABLE if changed or member_id == group.leader_id:
            # A leader joins again because of what only a new assignment can answer, such as new partitions.
            _update_member(turn, event, member_id)
            rebalance_or_complete_join(turn)
        case _:
            # The first answer was lost: the generation is as it was.
            turn.reply(event.token, joined(group, member_id))


def _add_member(turn: Turn, event: JoinGroup, member_id: str) -> None:
    group = turn.group
    member = Member(
        member_id=member_id,
        client_id=event.client_id,
        client_host=event.client_host,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        session_timeout_ms=event.session_timeout_ms,
        protocols=event.protocols,
        group_instance_id=event.group_instance_id,
        is_new=True,
    )
    static_members = group.static_members
    if event.group_instance_id is not None:
        static_members = {**static_members, event.group_instance_id: member_id}
    turn.group = group._replace(
        protocol_type=group.protocol_type if group.members else event.protocol_type,
        leader_id=group.leader_id or member_id,
        members={**group.members, member_id: member},
        static_members=static_members,
        supporters=supporters_after(group.supporters, (), event.protocols),
        pending_members=group.pending_members - {member_id},
        joining={**group.joining, member_id: event.token},
        member_added=group.member_added or group.is_initial_rebalance,
    )
    # It cannot send heartbeats before it is answered, and a client that disconnects meanwhile is not noticed.
    turn.set_timer(session_timer(event.group_id, member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete_join(turn)


def _update_member(turn: Turn, event: JoinGroup, member_id: str) -> None:
    """Take over what the member says now, and park its request."""
    group = turn.group
    before = group.members[member_id]
    after = before._replace(
        protocols=event.protocols,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        session_timeout_ms=event.session_timeout_ms,
    )
    turn.reply(group.joining.get(member_id), JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member_id))
    turn.group = group._replace(
        members={**group.members, member_id: after},
        supporters=supporters_after(group.supporters, before.protocols, after.protocols),
        joining={**group.joining, member_id: event.token},
    )


def _replace_static_member(turn: Turn, event: JoinGroup, old_id: str, new_id: str) -> None:
    """A static member has restarted: it keeps its assignment, and its former self is fenced off (KIP-345)."""
    assert event.group_instance_id is not None
    group = turn.group
    former = group.members[old_id]
    member = former._replace(
        member_id=new_id,
        protocols=event.protocols,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        session_timeout_ms=event.session_timeout_ms,
        is_new=False,
    )
    turn.reply(group.joining.get(old_id), JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
    turn.reply(group.syncing.get(old_id), SyncResult(ErrorCode.FENCED_INSTANCE_ID))
    turn.group = group._replace(
        leader_id=new_id if group.leader_id == old_id else group.leader_id,
        members={**without(group.members, old_id), new_id: member},
        static_members={**group.static_members, event.group_instance_id: new_id},
        supporters=supporters_after(group.supporters, former.protocols, member.protocols),
        joining=without(group.joining, old_id),
        syncing=without(group.syncing, old_id),
        unsynced=group.unsynced - {old_id} | {new_id} if old_id in group.unsynced else group.unsynced,
    )
    turn.cancel_timer(session_timer(event.group_id, old_id))
    turn.reset_session(member)
    if group.phase is Phase.STABLE and turn.group.chosen_protocol() == group.protocol_name:
        turn.write_group()
        turn.reply(
            event.token, _welcome_back(turn.group, new_id, former_leader_id=group.leader_id, event=event)
        )
        return
    turn.group = turn.group._replace(joining={**turn.group.joining, new_id: event.token})
    # While the leader works on an assignment that knows the old id only, nothing helps but beginning again.
    rebalance_or_complete_join(turn)


def _welcome_back(
    group: ClassicGroup, member_id: str, *, former_leader_id: str | None, event: JoinGroup
) -> JoinResult:
    """The answer to a static member that has come back without a rebalance.

    A leader that came back must not assign again. From v9 on it is told so (KIP-814). Before, the only way is
    to name its former id as the leader, so that it takes itself for a follower.
    """
    if event.version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        return joined(group, member_id)._replace(skip_assignment=member_id == group.leader_id)
    return joined(group, member_id)._replace(leader_id=former_leader_id or "", members=())


# ---- SyncGroup, Heartbeat, LeaveGroup ----


def on_sync(groups: Groups, event: SyncGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Followers wait; when the leader brings the assignment it is stored, and then everyone is answered."""

    def reject(error: ErrorCode) -> Step[Groups]:
        return refuse(groups, event.token, SyncResult(error))

    if not event.group_id:
        return reject(ErrorCode.INVALID_GROUP_ID)
    group = groups.classic(event.group_id)
    if group is None or group.phase is Phase.EMPTY:
        return reject(ErrorCode.UNKNOWN_MEMBER_ID)
    error = fenced(group, event.member_id, event.group_instance_id)
    if error is not ErrorCode.NONE:
        return reject(error)
    if event.generation != group.generation:
        return reject(ErrorCode.ILLEGAL_GENERATION)
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
        turn.reply(event.token, _assigned(group, group.members[event.member_id]))
        return turn.step(groups)
    turn.reply(group.syncing.get(event.member_id), SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    turn.group = turn.group._replace(syncing={**group.syncing, event.member_id: event.token})
    if event.member_id == group.leader_id:
        _assign(turn, dict(event.assignments))
    return turn.step(groups)


def _contradicts(claimed: str | None, known: str | None) -> bool:
    return claimed is not None and known is not None and claimed != known


def _assign(turn: Turn, assignments: Mapping[str, bytes]) -> None:
    """The leader has decided. Members it left out get an empty assignment, which is an assignment too."""
    waiting = turn.group.syncing
    members = {
        name: member._replace(assignment=assignments.get(name, b""))
        for name, member in turn.group.members.items()
    }
    turn.group = turn.group._replace(members=members, syncing={})
    turn.enter(Phase.STABLE)
    turn.write_group()
    for member_id, token in waiting.items():
        turn.reply(token, _assigned(turn.group, members[member_id]))
        turn.reset_session(members[member_id])


def _assigned(group: ClassicGroup, member: Member) -> SyncResult:
    return SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)


def on_heartbeat(groups: Groups, event: Heartbeat) -> Step[Groups]:
    """Keep a member's session alive and tell it whether to join again. The hot path: no state changes."""
    group = groups.classic(event.group_id)
    error = _heartbeat_error(group, event)
    if error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        return refuse(groups, event.token, error)
    assert group is not None
    timeout_ms = group.members[event.member_id].session_timeout_ms
    return Step(
        groups,
        effects=(
            SetTimer(session_timer(event.group_id, event.member_id), event.now_ms + timeout_ms),
            Reply(event.token, error),
        ),
    )


def _heartbeat_error(group: ClassicGroup | None, event: Heartbeat) -> ErrorCode:
    if not event.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = fenced(group, event.member_id, event.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.phase is Phase.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def on_leave(groups: Groups, event: LeaveGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Take members off the group at once; those that stay rebalance."""
    if not event.group_id:
        return refuse(groups, event.token, LeaveResult(ErrorCode.INVALID_GROUP_ID))
    group = groups.classic(event.group_id)
    if group is None:
        strangers = tuple((leaving, ErrorCode.UNKNOWN_MEMBER_ID) for leaving in event.members)
        return refuse(groups, event.token, LeaveResult(ErrorCode.NONE, strangers))
    turn = Turn(group, event.now_ms, config)
    results = tuple((leaving, _leave(turn, leaving)) for leaving in event.members)
    turn.reply(event.token, LeaveResult(ErrorCode.NONE, results))
    if any(error is ErrorCode.NONE for _, error in results):
        if turn.group.phase in (Phase.STABLE, Phase.COMPLETING_REBALANCE):
            prepare_rebalance(turn)
        else:
            complete_join_if_ready(turn)
    return turn.step(groups)


def _leave(turn: Turn, leaving: LeavingMember) -> ErrorCode:
    group, member_id = turn.group, leaving.member_id
    if not member_id:
        # An administrator removes a static member and knows its instance id only.
        owner = group.static_members.get(leaving.group_instance_id or "")
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = owner
    elif member_id not in group.pending_members:
        error = fenced(group, member_id, leaving.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    remove_member(turn, member_id)
    return ErrorCode.NONE
