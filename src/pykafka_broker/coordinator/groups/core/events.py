"""The events of the groups of a shard, and the answers to the callers.

Each request carries the token of its answer, the time, and its version if Kafka's behaviour depends on it.
The events of share groups are in `share/events.py`, those of streams groups in `streams/events.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from pykafka_broker.coordinator.groups.core.classic.state import Protocol
from pykafka_broker.coordinator.groups.core.committed_offset import LATEST_TIMESTAMP_MS
from pykafka_broker.coordinator.groups.core.share.events import ShareEvent
from pykafka_broker.coordinator.groups.core.streams.events import StreamsEvent
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.machine.step import Loaded as Loaded
from pykafka_broker.machine.step import TimerFired as TimerFired
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.system.named_tuple import NamedTuple


class JoinGroup(NamedTuple):
    """A member, or (with an empty id) a client that is to become one, asks to join the next generation."""

    token: int
    now_ms: int
    version: int
    group_id: str
    member_id: str
    client_id: str
    client_host: str
    #: Text of a fresh UUID, used if a member id has to be made up.
    uuid: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    group_instance_id: str | None = None
    #: "User:alice", who may see the topics that expressions of the group match.
    principal: str = ""


class JoinedMember(NamedTuple):
    """A member as the leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The answer to JoinGroup; only the leader of the generation gets `members`."""

    error: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncGroup(NamedTuple):
    """A member asks for its assignment; the leader brings those of all members."""

    token: int
    now_ms: int
    group_id: str
    member_id: str
    generation: int
    assignments: tuple[tuple[str, bytes], ...] = ()
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None


class SyncResult(NamedTuple):
    """The answer to SyncGroup."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class AssignmentRefused(NamedTuple):
    """The log has refused the assignment of a leader's SyncGroup, which `token` stands for."""

    token: int
    now_ms: int
    group_id: str
    error: ErrorCode


class Heartbeat(NamedTuple):
    """A member is alive. Answered with an `ErrorCode`."""

    token: int
    now_ms: int
    group_id: str
    member_id: str
    generation: int
    group_instance_id: str | None = None


class LeavingMember(NamedTuple):
    """A member that leaves; an administrator may name a static one by its instance id alone."""

    member_id: str
    group_instance_id: str | None = None
    #: In the words of the member, for explanations (KIP-800).
    reason: str | None = None


class LeaveGroup(NamedTuple):
    """Members leave now instead of timing out."""

    token: int
    now_ms: int
    group_id: str
    members: tuple[LeavingMember, ...]


class LeaveResult(NamedTuple):
    """The answer to LeaveGroup: one error for all, or one each."""

    error: ErrorCode
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()


class CommitTransactionalOffsets(NamedTuple):
    """Store offsets for a group if the producer's transaction commits; answered with a `CommitResult`."""

    token: int
    now_ms: int
    group_id: str
    topics: tuple[TopicCommit, ...]
    producer_id: int
    producer_epoch: int
    #: Proves to the log that the transaction coordinator has confirmed the transaction.
    guard: int
    member_id: str = ""
    generation: int = -1
    group_instance_id: str | None = None


class CompleteTransaction(NamedTuple):
    """A transaction with offsets of this shard's groups ends with a marker. Answered with an `ErrorCode`."""

    token: int
    marker: Marker


class PartitionCommit(NamedTuple):
    """An offset to commit; null metadata is stored as the empty string."""

    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


class TopicCommit(NamedTuple):
    """Offsets to commit for one topic."""

    topic: str
    partitions: tuple[PartitionCommit, ...]
    topic_id: bytes = ZERO_UUID


class CommitOffsets(NamedTuple):
    """Store offsets for a group; answered with a `CommitResult`."""

    token: int
    now_ms: int
    version: int
    group_id: str
    topics: tuple[TopicCommit, ...]
    member_id: str = ""
    generation: int = -1
    group_instance_id: str | None = None
    #: OffsetCommit v2-4 may ask for its own retention; -1 leaves it to the broker.
    retention_ms: int = -1


#: (topic name, topic id, ((partition, error), ...)) for each topic of the request, in its order.
CommitResult = tuple[tuple[str, bytes, tuple[tuple[int, ErrorCode], ...]], ...]


def refused_commit(topics: Iterable[TopicCommit], error: ErrorCode) -> CommitResult:
    """The error for every partition."""
    return tuple(
        (topic.topic, topic.topic_id, tuple((each.partition, error) for each in topic.partitions))
        for topic in topics
    )


class TopicPartitions(NamedTuple):
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]
    topic_id: bytes = ZERO_UUID


class FetchOffsets(NamedTuple):
    """Read a group's offsets; `topics` None means all there are."""

    token: int
    group_id: str
    topics: tuple[TopicPartitions, ...] | None
    #: Answer UNSTABLE_OFFSET_COMMIT instead of an offset that an open transaction may replace.
    require_stable: bool = False
    #: OffsetFetch v9+ names the member of a consumer group that asks; None: a client without identity.
    member_id: str | None = None
    member_epoch: int = -1


class FetchedOffset(NamedTuple):
    """The committed offset of one partition; -1 and no error if there is none."""

    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class FetchResult(NamedTuple):
    """The answer to FetchOffsets for one group."""

    error: ErrorCode
    topics: tuple[tuple[str, bytes, tuple[FetchedOffset, ...]], ...] = ()


class DeleteOffsets(NamedTuple):
    """Forget offsets of topics that no member of the group reads."""

    token: int
    group_id: str
    topics: tuple[TopicPartitions, ...]


class DeleteOffsetsResult(NamedTuple):
    """The answer to DeleteOffsets."""

    error: ErrorCode
    topics: tuple[tuple[str, tuple[tuple[int, ErrorCode], ...]], ...] = ()


class ListGroups(NamedTuple):
    """List the groups; empty filters let everything through."""

    token: int
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class ListedGroup(NamedTuple):
    """One line of ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class DescribeGroup(NamedTuple):
    """Describe one classic group."""

    token: int
    version: int
    group_id: str


class DescribedMember(NamedTuple):
    """A member as DescribeGroups shows it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """The answer to DescribeGroup."""

    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    error_message: str | None = None


class DeleteGroup(NamedTuple):
    """Forget an empty group and its offsets. Answered with an `ErrorCode`."""

    token: int
    group_id: str


class ConsumerGroupHeartbeat(NamedTuple):
    """A consumer joins a consumer group, stays in it, or leaves it (KIP-848).

    A field that is None has not changed since the member sent it last. `owned` are the partitions the member
    has at the moment, as (topic id, partitions).
    """

    token: int
    now_ms: int
    version: int
    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    #: A fresh random id, used if the member has none.
    uuid: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None
    #: "User:alice", who may see the topics that expressions of the group match.
    principal: str = ""


class ConsumerGroupHeartbeatResult(NamedTuple):
    """The answer to ConsumerGroupHeartbeat; no assignment means that it is as before."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    #: (topic id, partitions).
    assignment: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None


class DescribeConsumerGroup(NamedTuple):
    """Describe one consumer group."""

    token: int
    group_id: str


#: Partitions of topics as a description shows them: (topic id, name, partitions).
DescribedPartitions = tuple[tuple[bytes, str, tuple[int, ...]], ...]


class DescribedConsumer(NamedTuple):
    """A member as ConsumerGroupDescribe shows it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: DescribedPartitions
    target_assignment: DescribedPartitions
    is_classic: bool


class DescribedConsumerGroup(NamedTuple):
    """The answer to DescribeConsumerGroup."""

    error: ErrorCode
    group_id: str
    error_message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumer, ...] = ()


class TopicsChanged(NamedTuple):
    """The cluster's topics are now those of `topics`; `changed` names those that came, changed or went."""

    topics: TopicDirectory
    changed: frozenset[str]
    has_new_topics: bool


class RegexesResolved(NamedTuple):
    """The shell has resolved regular expressions of a group, given as (expression, topics).

    `version` is that of the metadata used; `resolved` is None if the work failed.
    """

    now_ms: int
    group_id: str
    started_ms: int
    version: int
    resolved: tuple[tuple[str, frozenset[str]], ...] | None


class TopicsDeleted(NamedTuple):
    """Topics, given as (name, topic id), were deleted: the offsets committed to them are forgotten."""

    topics: tuple[tuple[str, bytes], ...]
    now_ms: int = LATEST_TIMESTAMP_MS


class DeletionRefused(NamedTuple):
    """The log has refused a slice of a group's deletion, or the records of a request that waited for it."""

    group_id: str
    now_ms: int
    error: KafkaError


#: Requests of the classic protocol; groups of some other kinds have members that speak it.
ClassicRequest = Union[Heartbeat, JoinGroup, SyncGroup, LeaveGroup]

#: Events for groups of all kinds.
CommonEvent = Union[
    CommitOffsets,
    CommitTransactionalOffsets,
    CompleteTransaction,
    FetchOffsets,
    DeleteOffsets,
    ListGroups,
    DeleteGroup,
    DeletionRefused,
    TopicsChanged,
    TopicsDeleted,
    Loaded,
    TimerFired,
]

#: Events for one kind of group (`kinds.py`).
ClassicEvent = Union[ClassicRequest, DescribeGroup, AssignmentRefused]
ConsumerEvent = Union[ConsumerGroupHeartbeat, DescribeConsumerGroup, RegexesResolved]

Event = Union[CommonEvent, ClassicEvent, ConsumerEvent, ShareEvent, StreamsEvent]
