"""The answers of a classic group to the questions that every kind of group answers."""

from __future__ import annotations

from typing import assert_never, get_args

from pykafka_broker.coordinator.groups.core.classic import describe, heartbeat, join, leave, rebalance, sync
from pykafka_broker.coordinator.groups.core.classic.records import group_tombstone
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.classic.turn import sender_error, session_timer
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    AssignmentRefused,
    ClassicEvent,
    ClassicRequest,
    CommitOffsets,
    CommitTransactionalOffsets,
    DescribeGroup,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from pykafka_broker.coordinator.groups.core.kind import GroupKind
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Effect, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode


class ClassicKind(GroupKind[ClassicGroup]):
    """Members of the present generation may commit, except while the assignment is being made. Any client may
    commit if the group has no members.
    """

    name = "classic"
    requests = (*get_args(ClassicRequest), DescribeGroup)
    outcomes = (AssignmentRefused,)
    timers = {
        "session": rebalance.on_session_timer,
        "join": rebalance.on_join_timer,
        "sync": rebalance.on_sync_timer,
    }

    def handle(self, groups: Groups, event: ClassicEvent, config: GroupCoordinatorConfig) -> Step[Groups]:
        match event:
            case Heartbeat():
                return heartbeat.on_heartbeat(groups, event)
            case JoinGroup():
                return join.on_join(groups, event, config)
            case SyncGroup():
                return sync.on_sync(groups, event, config)
            case LeaveGroup():
                return leave.on_leave(groups, event, config)
            case DescribeGroup():
                return describe.on_describe(groups, event)
            case AssignmentRefused():
                return sync.on_refused(groups, event, config)
            case _:
                assert_never(event)

    def protocol_type(self, group: ClassicGroup) -> str:
        return group.protocol_type or ""

    def state_of(self, group: ClassicGroup) -> str:
        return group.phase.value

    def is_empty(self, group: ClassicGroup) -> bool:
        return group.phase is Phase.EMPTY

    def tombstones(self, group: ClassicGroup) -> list[Record]:
        return [group_tombstone(group.group_id)]

    def is_subscribed_to(self, group: ClassicGroup, topic: str) -> bool:
        return group.is_subscribed_to(topic)

    def commit_error(self, group: ClassicGroup, event: CommitOffsets) -> ErrorCode:
        if event.generation < 0 and group.phase is Phase.EMPTY:
            return ErrorCode.NONE
        if event.generation < 0 and not event.member_id and event.group_instance_id is None:
            # A client without an identity may commit only while there are no members.
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = sender_error(group, event.member_id, event.group_instance_id, event.generation)
        if error is not ErrorCode.NONE:
            return error
        if group.phase is Phase.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def commit_effects(self, group: ClassicGroup, event: CommitOffsets) -> list[Effect]:
        """A member that commits is alive: its session is extended."""
        if group.phase not in (Phase.STABLE, Phase.PREPARING_REBALANCE):
            return []
        timeout_ms = group.members[event.member_id].session_timeout_ms
        return [SetTimer(session_timer(event.group_id, event.member_id), event.now_ms + timeout_ms)]

    def commit_error_in_transaction(
        self, group: ClassicGroup, event: CommitTransactionalOffsets, topics: TopicDirectory
    ) -> ErrorCode:
        if event.generation < 0 and group.phase is Phase.EMPTY:
            return ErrorCode.NONE
        return sender_error(group, event.member_id, event.group_instance_id, event.generation)

    def fetch_error(self, group: ClassicGroup, event: FetchOffsets) -> ErrorCode:
        """Any client may, whatever identity it gives."""
        return ErrorCode.NONE

    def deletion_error(self, group: ClassicGroup) -> ErrorCode:
        """Only consumers tell which topics they read."""
        may_be = group.phase is Phase.EMPTY or group.is_consumer_group
        return ErrorCode.NONE if may_be else ErrorCode.NON_EMPTY_GROUP

    def ages_since_ms(self, group: ClassicGroup, committed: CommittedOffset) -> int | None:
        """Offsets age from the commit in a simple group, from the moment it became empty in an empty one, and
        from the commit in a stable one whose members' topics are known.
        """
        if group.protocol_type is None:
            return committed.commit_timestamp_ms
        if group.phase is Phase.EMPTY:
            # Old brokers did not record when a group became empty.
            return committed.commit_timestamp_ms if group.phase_began_ms == -1 else group.phase_began_ms
        if group.phase is Phase.STABLE and group.subscribed_topics is not None:
            return committed.commit_timestamp_ms
        return None

    def on_loaded(
        self, group: ClassicGroup, now_ms: int, config: GroupCoordinatorConfig
    ) -> tuple[ClassicGroup, list[Effect]]:
        turn = rebalance.on_group_loaded(group, now_ms, config)
        return turn.group, turn.effects
