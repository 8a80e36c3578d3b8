"""JoinGroup: a client asks to be a member of a classic group, or to stay one in its next generation.

KIP-345 (static members), KIP-389 (maximum size), KIP-394 (member id handshake), KIP-814 (a returning static
leader need not assign again).

Three things differ from Apache Kafka; none makes a member wait longer. If a member repeats its JoinGroup, the
parked request is answered with REBALANCE_IN_PROGRESS, not dropped. If the group is full and rejects the last
member that a rebalance waits for, the rebalance ends at once, not after the timeout. If a static member
restarts before it has synced, the group waits for its new id, not for its old one.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.rebalance import (
    UNKNOWN_MEMBER,
    complete_join_if_ready,
    joined,
    rebalance_or_complete_join,
    remove_member,
    supporters_after,
    without,
)
from pykafka_broker.coordinator.groups.core.classic.records import new_group_record
from pykafka_broker.coordinator.groups.core.classic.state import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    ClassicGroup,
    Member,
    Phase,
)
from pykafka_broker.coordinator.groups.core.classic.subscription import subscribed_topics
from pykafka_broker.coordinator.groups.core.classic.turn import Turn, fenced, session_timer
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    JoinGroup,
    JoinResult,
    SyncResult,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode

#: The first JoinGroup version in which a new dynamic member gets its id first and joins again with it.
FIRST_VERSION_WITH_HANDSHAKE = 4
#: The first JoinGroup version that can tell a returning static leader not to assign again.
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


def on_join(groups: Groups, event: JoinGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Take a client into the next generation; the answer waits until that generation begins."""
    known = groups.classic(event.group_id)
    refusal = join_refusal(event, config)
    if refusal is ErrorCode.NONE and known is None and event.group_id in groups.groups:
        return refuse(groups, event.token, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
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
    """The error of a request that no group could accept."""
    lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not lowest <= event.session_timeout_ms <= highest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def _join(turn: Turn, event: JoinGroup) -> None:
    if not has_room(turn, event.member_id):
        remove_member(turn, event.member_id)
        turn.reply(event.token, JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
        # Perhaps the others waited only for this member.
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


def has_room(turn: Turn, member_id: str) -> bool:
    """May this member join without exceeding group.max.size?

    During a rebalance only members that have joined count: the last to join are rejected, also if the limit
    was lowered below the number of members. Otherwise all members count.
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
    """Answer with an id to join with (KIP-394): a client that never sees the answer leaves a pending id
    behind, not a member that never syncs.
    """
    turn.group = turn.group._replace(pending_members=turn.group.pending_members | {member_id})
    turn.set_timer(session_timer(event.group_id, member_id), event.session_timeout_ms)
    turn.reply(event.token, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _join_again(turn: Turn, event: JoinGroup) -> None:
    group, member_id = turn.group, event.member_id
    if member_id in group.pending_members:
        if event.group_instance_id is None:
            _add_member(turn, event, member_id)
        else:
            # No client does this: static members get no ids to join with.
            turn.reply(event.token, JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER))
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
            # A leader joins again when it wants a new assignment, for example for new partitions.
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
    # The member sends no heartbeats before the answer, and no disconnection is noticed.
    turn.set_timer(session_timer(event.group_id, member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete_join(turn)


def _update_member(turn: Turn, event: JoinGroup, member_id: str) -> None:
    """Take over the details of the member's new request, and park it."""
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
    """A static member has restarted: it keeps its assignment, and its old id is fenced (KIP-345)."""
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
    # Its new session timeout holds from its first heartbeat on.
    turn.set_timer(session_timer(event.group_id, new_id), former.session_timeout_ms)
    if group.phase is Phase.STABLE and turn.group.chosen_protocol() == group.protocol_name:
        turn.group = turn.group._replace(
            subscribed_topics=subscribed_topics(
                group.protocol_type, group.protocol_name, turn.group.members.values()
            )
        )
        turn.write_group()
        turn.reply(
            event.token, welcome_back(turn.group, new_id, former_leader_id=group.leader_id, event=event)
        )
        return
    turn.group = turn.group._replace(joining={**turn.group.joining, new_id: event.token})
    # The leader may be working on an assignment with the old id: rebalance again.
    rebalance_or_complete_join(turn)


def welcome_back(
    group: ClassicGroup, member_id: str, *, former_leader_id: str | None, event: JoinGroup
) -> JoinResult:
    """The answer to a static member that returns without a rebalance.

    A returning leader must not assign again. From v9 on the answer says so (KIP-814). Older versions name its
    old id as the leader, so that it acts as a follower.
    """
    if event.version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        return joined(group, member_id)._replace(skip_assignment=member_id == group.leader_id)
    return joined(group, member_id)._replace(leader_id=former_leader_id or "", members=())
