"""Heartbeat of a classic group's member."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.classic.turn import sender_error, session_timer
from pykafka_broker.coordinator.groups.core.events import (
    Heartbeat,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode


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
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = sender_error(group, event.member_id, event.group_instance_id, event.generation)
    if error is not ErrorCode.NONE:
        return error
    if group.phase is Phase.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
