"""The streams groups of KIP-1071 as a kind of group: their answers to what every kind is asked."""

from __future__ import annotations

from typing import assert_never, get_args

from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    FetchOffsets,
)
from pykafka_broker.coordinator.groups.core.kind import GroupKind
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.streams import commits, handlers
from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribeStreamsGroup,
    StreamsEvent,
    StreamsGroupHeartbeat,
)
from pykafka_broker.coordinator.groups.core.streams.records import streams_group_tombstones
from pykafka_broker.coordinator.groups.core.streams.state import GroupState, MemberState, StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.turn import revocation_timer, session_timer
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Effect, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode

#: The name by which ListGroups filters.
NOT_READY = "not_ready"


class StreamsKind(GroupKind[StreamsGroup]):
    """Streams groups: members commit and fetch in their epoch; their topics are those of the topology."""

    name = "streams"
    requests = get_args(StreamsEvent)
    timers = {
        "streams-session": handlers.on_session_timer,
        "streams-revocation": handlers.on_revocation_timer,
        "streams-initial-rebalance": handlers.on_initial_rebalance_timer,
    }
    gives_way_to_classic = True

    def handle(self, groups: Groups, event: StreamsEvent, config: GroupCoordinatorConfig) -> Step[Groups]:
        match event:
            case StreamsGroupHeartbeat():
                return handlers.on_heartbeat(groups, event, config)
            case DescribeStreamsGroup():
                return handlers.on_describe(groups, event)
            case _:
                assert_never(event)

    def protocol_type(self, group: StreamsGroup) -> str:
        return "streams"

    def state_of(self, group: StreamsGroup) -> str:
        return group.state.value

    def is_in_states(self, group: StreamsGroup, states: set[str]) -> bool:
        """For NOT_READY, Apache Kafka 4.3 compares with `not_ready`, a name that no client sends."""
        state = group.state
        return (NOT_READY if state is GroupState.NOT_READY else state.value.lower()) in states

    def is_empty(self, group: StreamsGroup) -> bool:
        return not group.members

    def tombstones(self, group: StreamsGroup) -> list[Record]:
        return streams_group_tombstones(group)

    def looks_at(self, group: StreamsGroup, topic: str) -> bool:
        """All topics of the topology count, internal ones too."""
        parts = () if group.topology is None else group.topology.subtopologies
        return any(topic in part.topics() for part in parts)

    def is_subscribed_to(self, group: StreamsGroup, topic: str) -> bool:
        return group.is_subscribed_to(topic)

    def commit_error(self, group: StreamsGroup, event: CommitOffsets) -> ErrorCode:
        return commits.commit_error(group, event)

    def commit_effects(self, group: StreamsGroup, event: CommitOffsets) -> list[Effect]:
        """Only heartbeats keep a member alive."""
        return []

    def commit_error_in_transaction(
        self, group: StreamsGroup, event: CommitTransactionalOffsets, topics: TopicDirectory
    ) -> ErrorCode:
        return commits.commit_error_in_transaction(group, event, topics)

    def fetch_error(self, group: StreamsGroup, event: FetchOffsets) -> ErrorCode:
        return commits.fetch_error(group, event)

    def deletion_error(self, group: StreamsGroup) -> ErrorCode:
        return ErrorCode.NONE

    def ages_since_ms(self, group: StreamsGroup, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms

    def on_loaded(
        self, group: StreamsGroup, now_ms: int, config: GroupCoordinatorConfig
    ) -> tuple[StreamsGroup, list[Effect]]:
        """Every member gets a new session, and its full rebalance timeout to revoke tasks."""
        session_timeout_ms = config.streams_settings(group.group_id).session_timeout_ms
        effects: list[Effect] = []
        for member in group.members.values():
            timer = session_timer(group.group_id, member.member_id)
            effects.append(SetTimer(timer, now_ms + session_timeout_ms))
            if member.state is MemberState.UNREVOKED_TASKS:
                timer = revocation_timer(group.group_id, member.member_id)
                effects.append(SetTimer(timer, now_ms + member.rebalance_timeout_ms))
        return group, effects
