"""The parts of every decision about a classic group: the turn, its timers, and the fencing of members."""

from __future__ import annotations

from collections.abc import Hashable

from pykafka_broker.coordinator.groups.core.classic.records import group_record
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Member, Phase
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import GroupTurn
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode


def session_timer(group_id: str, member_id: str) -> Hashable:
    """The timer that expels a member whose session has timed out, or withdraws a pending member id."""
    return ("session", group_id, member_id)


def join_timer(group_id: str) -> Hashable:
    """The timer that ends waiting for members to join."""
    return ("join", group_id)


def sync_timer(group_id: str) -> Hashable:
    """The timer that ends waiting for members to send SyncGroup."""
    return ("sync", group_id)


class Turn(GroupTurn):
    """The changes of one event to one classic group, while it is handled."""

    def __init__(self, group: ClassicGroup, now_ms: int, config: GroupCoordinatorConfig) -> None:
        super().__init__(now_ms, config)
        self.group = group

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


def fenced(group: ClassicGroup, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """Check the sender's identity. An instance id belongs to the last member that joined with it."""
    if group_instance_id is not None:
        owner = group.static_members.get(group_instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def sender_error(
    group: ClassicGroup, member_id: str, group_instance_id: str | None, generation: int
) -> ErrorCode:
    """Check the identity and the generation of a sender."""
    error = fenced(group, member_id, group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    return ErrorCode.NONE if generation == group.generation else ErrorCode.ILLEGAL_GENERATION
