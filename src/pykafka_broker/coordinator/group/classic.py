"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and the timers behind them.

A generation begins with everybody joining again, is assigned by one of the members, and lasts until somebody
comes, goes, changes its mind or falls silent:

    EMPTY ── first join ──▶ PREPARING_REBALANCE ── all joined, or time is up ──▶ COMPLETING_REBALANCE
      ▲                       ▲      │                                                   │
      └── nobody is left ─────│──────┘              leader sends the assignment          │
                              └──── join, leave, timeout ──── STABLE ◀───────────────────┘

KIP-62 (rebalance timeout), KIP-134 (initial delay), KIP-345 (static members, batched leave), KIP-389 (maximum
size), KIP-394 (member id handshake), KIP-559 (protocol type and name), KIP-814 (a static leader that comes
back need not assign again). Only what was agreed is durable: a GroupMetadata record is written when a group
is first asked for, when it becomes stable or empty, and when a static member of a stable group is replaced.

Where Apache Kafka forgets the parked request of a member that sends it once more, or that leaves while its
SyncGroup is parked, the older request is answered here (REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID): nothing
may stay parked for ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from pykafka_broker.coordinator.group.events import (
    Heartbeat,
    JoinedMember,
    JoinGroup,
    JoinResult,
    LeaveGroup,
    LeaveResult,
    LeavingMember,
    SyncGroup,
    SyncResult,
)
from pykafka_broker.coordinator.group.records import Record, group_record, new_group_record
from pykafka_broker.coordinator.group.state import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    ClassicGroup,
    GroupCoordinatorConfig,
    Groups,
    Member,
    Phase,
    Protocol,
)
from pykafka_broker.coordinator.group.subscription import subscribed_topics
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import CancelTimer, Effect, Reply, SetTimer, Step

#: JoinGroup versions from which on a new dynamic member is first given its id and told to come back with it.
FIRST_VERSION_WITH_HANDSHAKE = 4
#: JoinGroup versions from which on a returning static leader can be told not to assign again.
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9

UNKNOWN_MEMBER = ""

Value = TypeVar("Value")


def session_timer(group_id: str, member_id: str) -> Hashable:
    """The timer that expels a member which has fallen silent, or withdraws a member id nobody uses."""
    return ("session", group_id, member_id)


def join_timer(group_id: str) -> Hashable:
    """The timer that ends waiting for members to join."""
    return ("join", group_id)


def sync_timer(group_id: str) -> Hashable:
    """The timer that ends waiting for members to send SyncGroup."""
    return ("sync", group_id)


class Turn:
    """One event's consequences for one group, while they are worked out."""

    def __init__(self, group: ClassicGroup, now_ms: int, config: GroupCoordinatorConfig) -> None:
        self.group = group
        self.now_ms = now_ms
        self.config = config
        self.records: list[Record] = []
        self.effects: list[Effect] = []

    def reply(self, token: int | None, result: object) -> None:
        if token is not None:
            self.effects.append(Reply(token, result))

    def set_timer(self, key: Hashable, delay_ms: int) -> None:
        self.effects.append(SetTimer(key, self.now_ms + delay_ms))

    def cancel_timer(self, key: Hashable) -> None:
        self.effects.append(CancelTimer(key))

    def reset_session(self, member: Member) -> None:
        self.set_timer(session_timer(self.group.group_id, member.member_id), member.session_timeout_ms)

    def enter(self, phase: Phase) -> None:
        self.group = self.group._replace(phase=phase, phase_began_ms=self.now_ms)

    def write_group(self) -> None:
        self.records.append(group_record(self.group))

    def step(self, groups: Groups) -> Step[Groups]:
        unchanged = groups.groups.get(self.group.group_id) is self.group
        state = groups if unchanged else groups.with_group(self.group)
        return Step(state, tuple(self.records), tuple(self.effects))


def refuse(groups: Groups, token: int, result: object) -> Step[Groups]:
    """Nothing happens but the answer."""
    return Step(groups, effects=(Reply(token, result),))


# ---- JoinGroup ----


def on_join(groups: Groups, event: JoinGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Take somebody into the next generation; the answer waits until that generation begins."""

    def reject(error: ErrorCode) -> Step[Groups]:
        return refuse(groups, event.token, JoinResult(error, event.member_id))

    if not event.group_id:
        return reject(ErrorCode.INVALID_GROUP_ID)
    if not (
        config.group_min_session_timeout_ms <= event.session_timeout_ms <= config.group_max_session_timeout_ms
    ):
        return reject(ErrorCode.INVALID_SESSION_TIMEOUT)
    known = groups.groups.get(event.group_id)
    if known is None and event.member_id:
        return reject(ErrorCode.UNKNOWN_MEMBER_ID)
    turn = Turn(known or ClassicGroup(event.group_id, phase_began_ms=event.now_ms), event.now_ms, config)
    _join(turn, event)
    if known is None and not turn.records:
        turn.records.append(new_group_record(event.group_id, event.now_ms))
    return turn.step(groups)


def _join(turn: Turn, event: JoinGroup) -> None:
    if not _has_room(turn, event.member_id):
        _remove_member(turn, event.member_id)
        turn.reply(event.token, JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
        # The others may have waited for this one only.
        _complete_join_if_ready(turn)
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
            _rebalance_or_complete_join(turn)
        case Phase.COMPLETING_REBALANCE if changed:
            _update_member(turn, event, member_id)
            _rebalance_or_complete_join(turn)
        case Phase.STABLE if changed or member_id == group.leader_id:
            # A leader joins again because of what only a new assignment can answer, such as new partitions.
            _update_member(turn, event, member_id)
            _rebalance_or_complete_join(turn)
        case _:
            # The first answer was lost: the generation is as it was.
            turn.reply(event.token, _joined(group, member_id))


def _joined(group: ClassicGroup, member_id: str) -> JoinResult:
    """What a member of the present generation is told."""
    is_leader = member_id == group.leader_id
    return JoinResult(
        ErrorCode.NONE,
        member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id or "",
        members=_members_for_leader(group) if is_leader else (),
    )


def _members_for_leader(group: ClassicGroup) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(member.member_id, member.group_instance_id, member.metadata(group.protocol_name))
        for member in group.members.values()
    )


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
        supporters=_supporters(group.supporters, (), event.protocols),
        pending_members=group.pending_members - {member_id},
        joining={**group.joining, member_id: event.token},
        member_added=group.member_added or group.is_initial_rebalance,
    )
    # It cannot send heartbeats before it is answered, and a client that disconnects meanwhile is not noticed.
    turn.set_timer(session_timer(event.group_id, member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
    _rebalance_or_complete_join(turn)


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
        supporters=_supporters(group.supporters, before.protocols, after.protocols),
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
        members={**_without(group.members, old_id), new_id: member},
        static_members={**group.static_members, event.group_instance_id: new_id},
        supporters=_supporters(group.supporters, former.protocols, member.protocols),
        joining=_without(group.joining, old_id),
        syncing=_without(group.syncing, old_id),
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
    _rebalance_or_complete_join(turn)


def _welcome_back(
    group: ClassicGroup, member_id: str, *, former_leader_id: str | None, event: JoinGroup
) -> JoinResult:
    """The answer to a static member that has come back without a rebalance.

    A leader that came back must not assign again. From v9 on it is told so (KIP-814). Before, the only way is
    to name its former id as the leader, so that it takes itself for a follower.
    """
    if event.version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        return _joined(group, member_id)._replace(skip_assignment=member_id == group.leader_id)
    return _joined(group, member_id)._replace(leader_id=former_leader_id or "", members=())


# ---- the rebalance ----


def _rebalance_or_complete_join(turn: Turn) -> None:
    if turn.group.phase is not Phase.PREPARING_REBALANCE:
        _prepare_rebalance(turn)
    else:
        _complete_join_if_ready(turn)


def _prepare_rebalance(turn: Turn) -> None:
    """Ask everybody to join again. A group that was empty is given time for more members to come."""
    group = turn.group
    if group.phase is Phase.COMPLETING_REBALANCE:
        for member_id, token in group.syncing.items():
            turn.reply(token, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
            turn.reset_session(group.members[member_id])
        unassigned = {member.member_id: member._replace(assignment=b"") for member in group.members.values()}
        group = group._replace(members=unassigned, syncing={})
    turn.cancel_timer(sync_timer(group.group_id))
    initial = group.phase is Phase.EMPTY
    delay_ms = turn.config.group_initial_rebalance_delay_ms
    turn.group = group._replace(
        unsynced=frozenset(),
        is_initial_rebalance=initial,
        member_added=False,
        initial_delay_ms=delay_ms if initial else 0,
        initial_remaining_ms=max(group.rebalance_timeout_ms - delay_ms, 0) if initial else 0,
    )
    turn.enter(Phase.PREPARING_REBALANCE)
    if initial:
        turn.set_timer(join_timer(group.group_id), delay_ms)
    elif turn.group.all_members_joined:
        _complete_join(turn)
    else:
        turn.set_timer(join_timer(group.group_id), turn.group.rebalance_timeout_ms)


def _complete_join_if_ready(turn: Turn) -> None:
    group = turn.group
    if (
        group.phase is Phase.PREPARING_REBALANCE
        and not group.is_initial_rebalance
        and group.all_members_joined
    ):
        _complete_join(turn)


def _complete_join(turn: Turn) -> None:
    """Begin the next generation with those who have joined.

    Dynamic members that have not are dropped. Static ones stay until their session ends: they may only be
    restarting.
    """
    group_id = turn.group.group_id
    turn.cancel_timer(join_timer(group_id))
    for member in tuple(turn.group.members.values()):
        if member.member_id not in turn.group.joining and member.group_instance_id is None:
            _remove_member(turn, member.member_id)
    group = turn.group
    if group.members and not group.joining:
        # Only absent static members are left: wait until they come back or their sessions end.
        turn.group = group._replace(member_added=False, initial_remaining_ms=0)
        turn.set_timer(join_timer(group_id), group.rebalance_timeout_ms)
        return
    if group.members and group.leader_id not in group.joining:
        group = group._replace(leader_id=next(name for name in group.members if name in group.joining))
    protocol_name = group.chosen_protocol() if group.members else None
    joining = group.joining
    members = {member.member_id: member._replace(is_new=False) for member in group.members.values()}
    turn.group = group._replace(
        generation=group.generation + 1,
        protocol_name=protocol_name,
        members=members,
        subscribed_topics=subscribed_topics(group.protocol_type, protocol_name, members.values()),
        joining={},
        unsynced=frozenset(members),
        is_initial_rebalance=False,
        member_added=False,
        initial_delay_ms=0,
        initial_remaining_ms=0,
    )
    if not members:
        turn.enter(Phase.EMPTY)
        turn.write_group()
        return
    turn.enter(Phase.COMPLETING_REBALANCE)
    for member in members.values():
        turn.reply(joining.get(member.member_id), _joined(turn.group, member.member_id))
        turn.reset_session(member)
    turn.set_timer(sync_timer(group_id), turn.group.rebalance_timeout_ms)


def _remove_member(turn: Turn, member_id: str) -> None:
    """Take a member, or an id that was only given out, off the group; parked requests are answered."""
    group = turn.group
    turn.reply(group.joining.get(member_id), JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
    turn.reply(group.syncing.get(member_id), SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
    members = _without(group.members, member_id)
    member = group.members.get(member_id)
    static_members, supporters = group.static_members, group.supporters
    if member is not None:
        supporters = _supporters(supporters, member.protocols, ())
        if member.group_instance_id is not None:
            static_members = _without(static_members, member.group_instance_id)
        turn.cancel_timer(session_timer(group.group_id, member_id))
    elif member_id in group.pending_members:
        turn.cancel_timer(session_timer(group.group_id, member_id))
    turn.group = group._replace(
        leader_id=next(iter(members), None) if group.leader_id == member_id else group.leader_id,
        members=members,
        static_members=static_members,
        supporters=supporters,
        pending_members=group.pending_members - {member_id},
        joining=_without(group.joining, member_id),
        syncing=_without(group.syncing, member_id),
        unsynced=group.unsynced - {member_id},
    )


def _supporters(
    supporters: Mapping[str, int], before: tuple[Protocol, ...], after: tuple[Protocol, ...]
) -> Mapping[str, int]:
    """The number of members for each protocol, when one of them changes its list."""
    if before == after:
        return supporters
    changed = dict(supporters)
    for protocol in before:
        changed[protocol.name] -= 1
        if not changed[protocol.name]:
            del changed[protocol.name]
    for protocol in after:
        changed[protocol.name] = changed.get(protocol.name, 0) + 1
    return changed


def _without(mapping: Mapping[str, Value], key: str) -> Mapping[str, Value]:
    if key not in mapping:
        return mapping
    copy = dict(mapping)
    del copy[key]
    return copy


# ---- SyncGroup, Heartbeat, LeaveGroup ----


def fenced(group: ClassicGroup, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """Is the sender the member it says it is? A static member's name belongs to the last one that took it."""
    if group_instance_id is not None:
        owner = group.static_members.get(group_instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def on_sync(groups: Groups, event: SyncGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Followers wait; when the leader brings the assignment it is stored, and then everyone is answered."""

    def reject(error: ErrorCode) -> Step[Groups]:
        return refuse(groups, event.token, SyncResult(error))

    if not event.group_id:
        return reject(ErrorCode.INVALID_GROUP_ID)
    group = groups.groups.get(event.group_id)
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
    group = groups.groups.get(event.group_id)
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
    group = groups.groups.get(event.group_id)
    if group is None:
        strangers = tuple((leaving, ErrorCode.UNKNOWN_MEMBER_ID) for leaving in event.members)
        return refuse(groups, event.token, LeaveResult(ErrorCode.NONE, strangers))
    turn = Turn(group, event.now_ms, config)
    results = tuple((leaving, _leave(turn, leaving)) for leaving in event.members)
    turn.reply(event.token, LeaveResult(ErrorCode.NONE, results))
    if any(error is ErrorCode.NONE for _, error in results):
        if turn.group.phase in (Phase.STABLE, Phase.COMPLETING_REBALANCE):
            _prepare_rebalance(turn)
        else:
            _complete_join_if_ready(turn)
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
    _remove_member(turn, member_id)
    return ErrorCode.NONE


# ---- timers ----


def on_session_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member has been silent for its session timeout, or a member id has not been used."""
    group = groups.groups.get(group_id)
    if group is None or (member_id not in group.members and member_id not in group.pending_members):
        return Step(groups)
    if _is_waiting_for_us(group, member_id):
        return Step(groups)
    was_pending = member_id in group.pending_members
    turn = Turn(group, now_ms, config)
    _remove_member(turn, member_id)
    if turn.group.phase is Phase.PREPARING_REBALANCE:
        if turn.group.all_members_joined:
            _complete_join(turn)
    elif not was_pending:
        _prepare_rebalance(turn)
    return turn.step(groups)


def _is_waiting_for_us(group: ClassicGroup, member_id: str) -> bool:
    """A parked request keeps its member from sending heartbeats; its session restarts with the answer."""
    member = group.members.get(member_id)
    if member is None or member.is_new:
        return False
    return member_id in group.joining or member_id in group.syncing


def on_join_timer(groups: Groups, group_id: str, now_ms: int, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Time to join is up, unless this was the initial delay and members kept coming: then it is extended."""
    group = groups.groups.get(group_id)
    if group is None or group.phase is not Phase.PREPARING_REBALANCE:
        return Step(groups)
    turn = Turn(group, now_ms, config)
    if group.is_initial_rebalance and group.member_added and group.initial_remaining_ms:
        delay_ms = min(config.group_initial_rebalance_delay_ms, group.initial_remaining_ms)
        turn.group = group._replace(
            member_added=False,
            initial_delay_ms=delay_ms,
            initial_remaining_ms=max(group.initial_remaining_ms - group.initial_delay_ms, 0),
        )
        turn.set_timer(join_timer(group_id), delay_ms)
    else:
        _complete_join(turn)
    return turn.step(groups)


def on_sync_timer(groups: Groups, group_id: str, now_ms: int, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Members that joined and never asked for their assignment are dropped; the others rebalance."""
    group = groups.groups.get(group_id)
    if group is None or not group.unsynced:
        return Step(groups)
    turn = Turn(group, now_ms, config)
    for member_id in sorted(group.unsynced):
        _remove_member(turn, member_id)
    _prepare_rebalance(turn)
    return turn.step(groups)


def on_group_loaded(group: ClassicGroup, now_ms: int, config: GroupCoordinatorConfig) -> Turn:
    """Give the members of a group that was read back a session; a group over its maximum size rebalances."""
    turn = Turn(group, now_ms, config)
    for member in group.members.values():
        turn.reset_session(member)
    if len(group.members) > config.group_max_size:
        _prepare_rebalance(turn)
    return turn
