"""How a member leaves a streams group: by its own heartbeat, or because it is silent or slow."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.heartbeats import member_named
from pykafka_broker.coordinator.groups.core.streams.events import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
)
from pykafka_broker.coordinator.groups.core.streams.records import member_tombstones
from pykafka_broker.coordinator.groups.core.streams.state import MemberState, StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.turn import GroupStep, StreamsTurn
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def leave(
    group: StreamsGroup | None,
    event: StreamsGroupHeartbeat,
    topics: TopicDirectory,
    settings: StreamsGroupSettings,
) -> GroupStep:
    """A member says that it leaves.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID.

    """
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {event.group_id} not found.")
    turn = StreamsTurn(group, topics, settings, event.now_ms)
    if event.shutdown_application and group.shutdown_member_id is None:
        turn.soft(shutdown_member_id=event.member_id)
    member = member_named(group, event.member_id)
    _fence(turn, member)
    result = StreamsGroupHeartbeatResult(member_id=member.member_id, member_epoch=event.member_epoch)
    turn.reply(event.token, result)
    return turn.step()


def _fence(turn: StreamsTurn, member: StreamsMember) -> None:
    """Remove a member from the group, which moves to its next epoch."""
    turn.write(*member_tombstones(turn.group_id, member.member_id))
    turn.bump_epoch()
    turn.cancel_timers(member.member_id)


# ---- timers ----


def on_session_timer(
    group: StreamsGroup | None,
    member_id: str,
    topics: TopicDirectory,
    settings: StreamsGroupSettings,
    now_ms: int,
) -> GroupStep:
    """A member was silent for its session timeout."""
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return Step(group)
    turn = StreamsTurn(group, topics, settings, now_ms)
    _fence(turn, member)
    return turn.step()


def on_revocation_timer(
    group: StreamsGroup | None,
    member_id: str,
    topics: TopicDirectory,
    settings: StreamsGroupSettings,
    now_ms: int,
) -> GroupStep:
    """A member's rebalance timeout to revoke tasks is over."""
    member = None if group is None else group.members.get(member_id)
    if member is None or member.state is not MemberState.UNREVOKED_TASKS:
        return Step(group)
    return on_session_timer(group, member_id, topics, settings, now_ms)
