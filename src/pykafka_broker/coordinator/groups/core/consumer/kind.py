"""The consumer groups of KIP-848 as a kind of group: their answers to what every kind is asked."""

from __future__ import annotations

from typing import assert_never

from pykafka_broker.coordinator.groups.core.classic.state import CONSUMER_PROTOCOL_TYPE
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer import (
    classic_members,
    commits,
    describe,
    heartbeat,
    regexes,
)
from pykafka_broker.coordinator.groups.core.consumer.records import consumer_group_tombstones
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup, MemberState
from pykafka_broker.coordinator.groups.core.consumer.turn import revocation_timer, session_timer
from pykafka_broker.coordinator.groups.core.events import (
    ClassicRequest,
    CommitOffsets,
    CommitTransactionalOffsets,
    ConsumerEvent,
    ConsumerGroupHeartbeat,
    DescribeConsumerGroup,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    RegexesResolved,
    SyncGroup,
)
from pykafka_broker.coordinator.groups.core.kind import GroupKind
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Effect, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode


class ConsumerKind(GroupKind[ConsumerGroup]):
    """Consumer groups: members commit and fetch in their epoch; their topics are always known."""

    name = "consumer"
    requests = (ConsumerGroupHeartbeat, DescribeConsumerGroup)
    outcomes = (RegexesResolved,)
    timers = {
        "consumer-session": heartbeat.on_session_timer,
        "consumer-join": heartbeat.on_session_timer,
        "consumer-sync": heartbeat.on_session_timer,
        "consumer-revocation": heartbeat.on_revocation_timer,
    }
    gives_way_to_classic = True

    def handle(self, groups: Groups, event: ConsumerEvent, config: GroupCoordinatorConfig) -> Step[Groups]:
        match event:
            case ConsumerGroupHeartbeat():
                return heartbeat.on_heartbeat(groups, event, config)
            case DescribeConsumerGroup():
                return describe.on_describe(groups, event, config)
            case RegexesResolved():
                return regexes.on_regexes_resolved(groups, event, config)
            case _:
                assert_never(event)

    def handle_classic(
        self, groups: Groups, group: ConsumerGroup, event: ClassicRequest, config: GroupCoordinatorConfig
    ) -> Step[Groups]:
        match event:
            case Heartbeat():
                return classic_members.on_heartbeat(groups, group, event, config)
            case JoinGroup():
                return classic_members.on_join(groups, group, event, config)
            case SyncGroup():
                return classic_members.on_sync(groups, group, event, config)
            case LeaveGroup():
                return classic_members.on_leave(groups, group, event, config)
            case _:
                assert_never(event)

    def protocol_type(self, group: ConsumerGroup) -> str:
        return CONSUMER_PROTOCOL_TYPE

    def state_of(self, group: ConsumerGroup) -> str:
        return group.state.value

    def is_empty(self, group: ConsumerGroup) -> bool:
        return not group.members

    def tombstones(self, group: ConsumerGroup) -> list[Record]:
        return consumer_group_tombstones(group)

    def is_subscribed_to(self, group: ConsumerGroup, topic: str) -> bool:
        return group.is_subscribed_to(topic)

    def commit_error(self, group: ConsumerGroup, event: CommitOffsets) -> ErrorCode:
        return commits.commit_error(group, event)

    def commit_effects(self, group: ConsumerGroup, event: CommitOffsets) -> list[Effect]:
        """Only heartbeats keep a member alive."""
        return []

    def commit_error_in_transaction(
        self, group: ConsumerGroup, event: CommitTransactionalOffsets, topics: TopicDirectory
    ) -> ErrorCode:
        error = commits.commit_error(group, _as_plain_commit(event, topics))
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def fetch_error(self, group: ConsumerGroup, event: FetchOffsets) -> ErrorCode:
        return commits.fetch_error(group, event)

    def deletion_error(self, group: ConsumerGroup) -> ErrorCode:
        return ErrorCode.NONE

    def ages_since_ms(self, group: ConsumerGroup, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms

    def on_loaded(
        self, group: ConsumerGroup, now_ms: int, config: GroupCoordinatorConfig
    ) -> tuple[ConsumerGroup, list[Effect]]:
        return group, _timers_of_loaded(group, now_ms, config)


def _as_plain_commit(event: CommitTransactionalOffsets, directory: TopicDirectory) -> CommitOffsets:
    """The same commit with topic ids, which requests in transactions do not have."""
    known = ((topic, directory.topic(topic.topic)) for topic in event.topics)
    topics = tuple(topic._replace(topic_id=found.topic_id) if found else topic for topic, found in known)
    return CommitOffsets(
        event.token,
        event.now_ms,
        commits.FIRST_VERSION_FOR_CONSUMERS,
        event.group_id,
        topics,
        event.member_id,
        event.generation,
        event.group_instance_id,
    )


def _timers_of_loaded(group: ConsumerGroup, now_ms: int, config: GroupCoordinatorConfig) -> list[Effect]:
    """Every member gets a new session, and its full rebalance timeout to revoke partitions."""
    timeout_ms = config.consumer_settings(group.group_id).session_timeout_ms
    effects: list[Effect] = []
    for member in group.members.values():
        effects.append(SetTimer(session_timer(group.group_id, member.member_id), now_ms + timeout_ms))
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            at_ms = now_ms + member.rebalance_timeout_ms
            effects.append(SetTimer(revocation_timer(group.group_id, member.member_id), at_ms))
    return effects
