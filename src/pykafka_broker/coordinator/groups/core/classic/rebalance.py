"""Rebalances: how a classic group gets from one generation to the next, and which members drop out.

In a new generation all members join again, one of them assigns the partitions, and the generation lasts until
a member joins, leaves, changes its protocols or times out:

    EMPTY ── first join ──▶ PREPARING_REBALANCE ── all joined, or time is up ──▶ COMPLETING_REBALANCE
      ▲                       ▲      │                                                   │
      └── no member left ─────│──────┘              leader sends the assignment          │
                              └──── join, leave, timeout ──── STABLE ◀───────────────────┘

KIP-62 (rebalance timeout), KIP-134 (initial delay), KIP-345 (static members outlive a rebalance). Only the
agreed outcome is durable: a GroupMetadata record is written when a group becomes stable or empty, at its
first JoinGroup, and when a static member of a stable group is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.classic.subscription import subscribed_topics
from pykafka_broker.coordinator.groups.core.classic.turn import Turn, join_timer, session_timer, sync_timer
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import JoinedMember, JoinResult, SyncResult
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode

#: The member id in the answer to a member that must not use its id any more.
UNKNOWN_MEMBER = ""

Value = TypeVar("Value")


def rebalance_or_complete_join(turn: Turn) -> None:
    """The members have changed: begin a rebalance, or end the present one if it waits for no other member."""
    if turn.group.phase is not Phase.PREPARING_REBALANCE:
        prepare_rebalance(turn)
    else:
        complete_join_if_ready(turn)


def prepare_rebalance(turn: Turn) -> None:
    """Ask all members to join again. A group that was empty is given time for more members to come."""
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
        complete_join(turn)
    else:
        turn.set_timer(join_timer(group.group_id), turn.group.rebalance_timeout_ms)


def complete_join_if_ready(turn: Turn) -> None:
    """Begin the next generation if all members have joined. The initial delay is never cut short."""
    group = turn.group
    if (
        group.phase is Phase.PREPARING_REBALANCE
        and not group.is_initial_rebalance
        and group.all_members_joined
    ):
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """Begin the next generation with the members that have joined.

    Dynamic members that have not are dropped. Static ones stay until their session ends: they may only be
    restarting.
    """
    group_id = turn.group.group_id
    turn.cancel_timer(join_timer(group_id))
    for member in tuple(turn.group.members.values()):
        if member.member_id not in turn.group.joining and member.group_instance_id is None:
            remove_member(turn, member.member_id)
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
        turn.reply(joining.get(member.member_id), joined(turn.group, member.member_id))
        turn.reset_session(member)
    turn.set_timer(sync_timer(group_id), turn.group.rebalance_timeout_ms)


def remove_member(turn: Turn, member_id: str) -> None:
    """Remove a member, or a pending member id, from the group; parked requests are answered."""
    group = turn.group
    turn.reply(group.joining.get(member_id), JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
    turn.reply(group.syncing.get(member_id), SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
    members = without(group.members, member_id)
    member = group.members.get(member_id)
    static_members, supporters = group.static_members, group.supporters
    if member is not None:
        supporters = supporters_after(supporters, member.protocols, ())
        if member.group_instance_id is not None:
            static_members = without(static_members, member.group_instance_id)
        turn.cancel_timer(session_timer(group.group_id, member_id))
    elif member_id in group.pending_members:
        turn.cancel_timer(session_timer(group.group_id, member_id))
    turn.group = group._replace(
        leader_id=next(iter(members), None) if group.leader_id == member_id else group.leader_id,
        members=members,
        static_members=static_members,
        supporters=supporters,
        pending_members=group.pending_members - {member_id},
        joining=without(group.joining, member_id),
        syncing=without(group.syncing, member_id),
        unsynced=group.unsynced - {member_id},
    )


def joined(group: ClassicGroup, member_id: str) -> JoinResult:
    """The answer to the JoinGroup of a member of the present generation."""
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


def supporters_after(
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


def without(mapping: Mapping[str, Value], key: str) -> Mapping[str, Value]:
    """The mapping without one key, copied only if the key is there."""
    if key not in mapping:
        return mapping
    copy = dict(mapping)
    del copy[key]
    return copy


# ---- timers ----


def on_session_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member has been silent for its session timeout, or a member id has not been used."""
    group = groups.classic(group_id)
    if group is None or (member_id not in group.members and member_id not in group.pending_members):
        return Step(groups)
    if _is_waiting_for_us(group, member_id):
        return Step(groups)
    was_pending = member_id in group.pending_members
    turn = Turn(group, now_ms, config)
    remove_member(turn, member_id)
    if turn.group.phase is Phase.PREPARING_REBALANCE:
        complete_join_if_ready(turn)
    elif not was_pending:
        prepare_rebalance(turn)
    return turn.step(groups)


def _is_waiting_for_us(group: ClassicGroup, member_id: str) -> bool:
    """A member with a parked request sends no heartbeats; the answer restarts the member's session."""
    member = group.members.get(member_id)
    if member is None or member.is_new:
        return False
    return member_id in group.joining or member_id in group.syncing


def on_join_timer(groups: Groups, group_id: str, now_ms: int, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Time to join is up, unless this was the initial delay and members kept coming: then it is extended."""
    group = groups.classic(group_id)
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
        complete_join(turn)
    return turn.step(groups)


def on_sync_timer(groups: Groups, group_id: str, now_ms: int, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Members that joined and never asked for their assignment are dropped; the others rebalance."""
    group = groups.classic(group_id)
    if group is None or not group.unsynced:
        return Step(groups)
    turn = Turn(group, now_ms, config)
    for member_id in sorted(group.unsynced):
        remove_member(turn, member_id)
    prepare_rebalance(turn)
    return turn.step(groups)


def on_group_loaded(group: ClassicGroup, now_ms: int, config: GroupCoordinatorConfig) -> Turn:
    """Start the sessions of a loaded group's members; a group over its maximum size rebalances."""
    turn = Turn(group, now_ms, config)
    for member in group.members.values():
        turn.reset_session(member)
    if len(group.members) > config.group_max_size:
        prepare_rebalance(turn)
    return turn
