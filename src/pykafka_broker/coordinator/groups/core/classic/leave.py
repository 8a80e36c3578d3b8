"""LeaveGroup: members of a classic group leave, or an administrator removes them (KIP-345).

The parked SyncGroup of a member that leaves is answered with UNKNOWN_MEMBER_ID; Apache Kafka drops it.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.rebalance import (
    complete_join_if_ready,
    prepare_rebalance,
    remove_member,
)
from pykafka_broker.coordinator.groups.core.classic.state import Phase
from pykafka_broker.coordinator.groups.core.classic.turn import Turn, fenced
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    LeaveGroup,
    LeaveResult,
    LeavingMember,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode


def on_leave(groups: Groups, event: LeaveGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Remove members from the group at once; the others rebalance."""
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
        # An administrator names a static member only by its instance id.
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
