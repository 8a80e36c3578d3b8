"""The answers where no shard takes an event: this node is not the coordinator, the partition is still being
read, or the log has refused the records.

The error has the code for clients (`shards.as_answered`); Heartbeat and OffsetFetch change some codes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordinator.groups.core.events import (
    CommitResult,
    ConsumerGroupHeartbeatResult,
    DeleteOffsetsResult,
    DescribedConsumerGroup,
    DescribedGroup,
    FetchResult,
    JoinResult,
    LeaveResult,
    SyncResult,
    TopicCommit,
    refused_commit,
)
from pykafka_broker.coordinator.groups.core.share.events import (
    AlteredShareOffsets,
    DeletedShareOffsets,
    DescribedShareGroup,
    DescribedShareOffsets,
    ShareGroupHeartbeatResult,
)
from pykafka_broker.coordinator.groups.core.streams.checks import check_heartbeat
from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribedStreamsGroup,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def join(member_id: str, error: KafkaError) -> JoinResult:
    """The answer to JoinGroup, which names the member only if the request names no group."""
    return JoinResult(error.code, member_id if error.code is ErrorCode.INVALID_GROUP_ID else "")


def sync(error: KafkaError) -> SyncResult:
    """The answer to SyncGroup."""
    return SyncResult(error.code)


def heartbeat(error: KafkaError) -> ErrorCode:
    """The answer to Heartbeat. During a load it is NONE: a new session starts after the load."""
    return ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code


def leave(error: KafkaError) -> LeaveResult:
    """The answer to LeaveGroup."""
    return LeaveResult(error.code)


def consumer_group_heartbeat(error: KafkaError) -> ConsumerGroupHeartbeatResult:
    """The answer to ConsumerGroupHeartbeat."""
    return ConsumerGroupHeartbeatResult(error.code, error.message)


def consumer_group_heartbeat_without_group_id(_: KafkaError) -> ConsumerGroupHeartbeatResult:
    """The answer to a ConsumerGroupHeartbeat that names no group, whichever broker is asked."""
    return ConsumerGroupHeartbeatResult(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")


def commit(topics: Iterable[TopicCommit], error: KafkaError) -> CommitResult:
    """The answer to OffsetCommit and TxnOffsetCommit."""
    return refused_commit(topics, error.code)


def fetch(error: KafkaError) -> FetchResult:
    """The answer to OffsetFetch. Consumers before 3.9 cannot deal with COORDINATOR_NOT_AVAILABLE here."""
    is_unavailable = error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    return FetchResult(ErrorCode.NOT_COORDINATOR if is_unavailable else error.code)


def delete_offsets(error: KafkaError) -> DeleteOffsetsResult:
    """The answer to OffsetDelete."""
    return DeleteOffsetsResult(error.code)


def delete(error: KafkaError) -> ErrorCode:
    """The answer to DeleteGroups, for one group."""
    return error.code


def describe(group_id: str, error: KafkaError) -> DescribedGroup:
    """The answer to DescribeGroups, for one group."""
    return DescribedGroup(error.code, group_id)


def describe_consumer_group(group_id: str, error: KafkaError) -> DescribedConsumerGroup:
    """The answer to ConsumerGroupDescribe, for one group."""
    return DescribedConsumerGroup(error.code, group_id, error.message)


def share_group_heartbeat(error: KafkaError) -> ShareGroupHeartbeatResult:
    """The answer to ShareGroupHeartbeat."""
    return ShareGroupHeartbeatResult(error.code, error.message)


def share_group_heartbeat_without_group_id(_: KafkaError) -> ShareGroupHeartbeatResult:
    """The answer to a ShareGroupHeartbeat that names no group, whichever broker is asked."""
    return ShareGroupHeartbeatResult(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")


def describe_share_group(group_id: str, error: KafkaError) -> DescribedShareGroup:
    """The answer to ShareGroupDescribe, for one group."""
    return DescribedShareGroup(error.code, group_id, error.message)


def describe_share_offsets(error: KafkaError) -> DescribedShareOffsets:
    """The answer to DescribeShareGroupOffsets, for one group."""
    return DescribedShareOffsets(error.code, error.message)


def alter_share_offsets(error: KafkaError) -> AlteredShareOffsets:
    """The answer to AlterShareGroupOffsets."""
    return AlteredShareOffsets(error.code, error.message)


def delete_share_offsets(error: KafkaError) -> DeletedShareOffsets:
    """The answer to DeleteShareGroupOffsets."""
    return DeletedShareOffsets(error.code, error.message)


def streams_group_heartbeat(event: StreamsGroupHeartbeat, error: KafkaError) -> StreamsGroupHeartbeatResult:
    """The answer to StreamsGroupHeartbeat: first an error of the request itself, on any broker."""
    try:
        check_heartbeat(event)
    except KafkaError as wrong:
        return StreamsGroupHeartbeatResult(wrong.code, wrong.explanation)
    return StreamsGroupHeartbeatResult(error.code, error.message)


def describe_streams_group(group_id: str, error: KafkaError) -> DescribedStreamsGroup:
    """The answer to StreamsGroupDescribe, for one group."""
    return DescribedStreamsGroup(group_id, error=error.code)
