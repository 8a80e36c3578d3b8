"""Share groups as a kind of group: their answers to what every kind is asked. They commit no offsets."""

from __future__ import annotations

from typing import assert_never, get_args

from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    FetchOffsets,
)
from pykafka_broker.coordinator.groups.core.kind import DeletedFirst, GroupKind
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.share import (
    describe,
    heartbeat,
    initializing,
    offsets,
    start_offsets,
)
from pykafka_broker.coordinator.groups.core.share.deletion import (
    error_of_deletion,
    states_to_delete,
    without_topics,
)
from pykafka_broker.coordinator.groups.core.share.events import (
    AlterShareOffsets,
    DeleteShareOffsets,
    DeletionPurpose,
    DescribeShareGroup,
    DescribeShareOffsets,
    EndOffsetsListed,
    ShareEvent,
    ShareGroupHeartbeat,
    ShareOutcome,
    ShareOutcomeRefused,
    ShareRequest,
    ShareStateDeleted,
    ShareStateInitialized,
    ShareSummaryRead,
)
from pykafka_broker.coordinator.groups.core.share.records import share_group_tombstones
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.share.turn import session_timer
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Effect, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode


class ShareKind(GroupKind[ShareGroup]):
    """Share groups stay until they are deleted, with members or without."""

    name = "share"
    requests = get_args(ShareRequest)
    outcomes = (*get_args(ShareOutcome), ShareOutcomeRefused)
    timers = {"share-session": heartbeat.on_session_timer}
    keeps_offsets = False

    def handle(self, groups: Groups, event: ShareEvent, config: GroupCoordinatorConfig) -> Step[Groups]:
        match event:
            case ShareGroupHeartbeat():
                return heartbeat.on_heartbeat(groups, event, config)
            case DescribeShareGroup():
                return describe.on_describe(groups, event, config)
            case DescribeShareOffsets():
                return start_offsets.on_describe(groups, event)
            case AlterShareOffsets():
                return offsets.on_alter(groups, event, config)
            case DeleteShareOffsets():
                return offsets.on_delete(groups, event, config)
            case ShareStateInitialized():
                return initializing.on_initialized(groups, event, config)
            case ShareStateDeleted():
                return offsets.on_deleted(groups, event, config)
            case ShareSummaryRead():
                return start_offsets.on_summary_read(groups, event)
            case EndOffsetsListed():
                return start_offsets.on_end_offsets(groups, event)
            case ShareOutcomeRefused():
                return offsets.on_refused(groups, event)
            case _:
                assert_never(event)

    def protocol_type(self, group: ShareGroup) -> str:
        return "share"

    def state_of(self, group: ShareGroup) -> str:
        return group.state.value

    def is_empty(self, group: ShareGroup) -> bool:
        return not group.members

    def expires(self, group: ShareGroup) -> bool:
        return False

    def tombstones(self, group: ShareGroup) -> list[Record]:
        return share_group_tombstones(group)

    def deleted_first(
        self, group: ShareGroup, token: int, topics: TopicDirectory
    ) -> tuple[list[Record], object | None]:
        return states_to_delete(group, token, topics)

    def deletion_goes_on(self, outcome: ShareOutcome | ShareOutcomeRefused) -> DeletedFirst | None:
        if not isinstance(outcome, ShareStateDeleted) or outcome.work.purpose is not DeletionPurpose.GROUP:
            return None
        return DeletedFirst(outcome.work.token, outcome.group_id, error_of_deletion(outcome))

    def forget_topics(
        self, group: ShareGroup, topic_ids: frozenset[bytes], topics: TopicDirectory, now_ms: int
    ) -> tuple[ShareGroup, list[Record]]:
        return without_topics(group, topic_ids, topics, now_ms)

    def is_subscribed_to(self, group: ShareGroup, topic: str) -> bool:
        return group.is_subscribed_to(topic)

    def commit_error(self, group: ShareGroup, event: CommitOffsets) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def commit_effects(self, group: ShareGroup, event: CommitOffsets) -> list[Effect]:
        """Nothing is ever committed."""
        return []

    def commit_error_in_transaction(
        self, group: ShareGroup, event: CommitTransactionalOffsets, topics: TopicDirectory
    ) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def fetch_error(self, group: ShareGroup, event: FetchOffsets) -> ErrorCode:
        """A fetch finds no offsets, as for a missing group."""
        return ErrorCode.NONE

    def deletion_error(self, group: ShareGroup) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def ages_since_ms(self, group: ShareGroup, committed: CommittedOffset) -> int | None:
        return None

    def on_loaded(
        self, group: ShareGroup, now_ms: int, config: GroupCoordinatorConfig
    ) -> tuple[ShareGroup, list[Effect]]:
        """Every member gets a new session; initializing states count as requested now."""
        timeout_ms = config.share_settings(group.group_id).session_timeout_ms
        effects: list[Effect] = [
            SetTimer(session_timer(group.group_id, member_id), now_ms + timeout_ms)
            for member_id in group.members
        ]
        return group._replace(states_written_ms=now_ms), effects
