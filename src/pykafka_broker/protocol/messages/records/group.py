"""The records of the group coordinator in `__consumer_offsets`: offsets, and groups of all four kinds.

A record's key starts with its type (`api_key`, int16) followed by the key message; its value starts with its
version (int16) followed by the value message; a null value deletes. Types 0 and 1 are committed offsets (0
only in very old logs), 2 classic groups, 3 to 8 and 16 consumer groups (KIP-848), 10 to 15 share groups
(KIP-932), 17 to 23 streams groups (KIP-1071).

OffsetCommitValue: v1 an expiry time, v3 the leader epoch instead of it, v4 flexible with the topic id.
GroupMetadataValue: v1 rebalance timeouts, v2 the time of the last state change, v3 static members, v4
flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import (
    array,
    binary,
    i8,
    i16,
    i32,
    i64,
    message,
    string,
    struct,
    u16,
    uuid,
)


@message(api_key=0, versions="0")
class LegacyOffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = i32()


@message(api_key=0, versions="0")
class LegacyOffsetCommitValue:
    offset: int = i64()
    metadata: str = string()
    commit_timestamp: int = i64()


@message(api_key=1, versions="0")
class OffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = i32()


@message(api_key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    offset: int = i64()
    leader_epoch: int = i32("3+", default=-1)
    metadata: str = string()
    commit_timestamp: int = i64()
    expire_timestamp: int = i64("1", default=-1)
    topic_id: bytes = uuid("4+", tag=0, default=ZERO_UUID)


@message(api_key=2, versions="0")
class GroupMetadataKey:
    group: str = string()


@message()
class MemberMetadata:
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable=True, default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = i32("1+", default=-1)
    session_timeout: int = i32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@message(api_key=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str = string()
    generation: int = i32()
    #: None while the group is not stable.
    protocol: str | None = string(nullable=True)
    leader: str | None = string(nullable=True)
    current_state_timestamp: int = i64("2+", default=-1)
    members: list[MemberMetadata] = array(MemberMetadata)


@message(api_key=3, versions="0")
class ConsumerGroupMetadataKey:
    group_id: str = string()


@message(api_key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: int = i32()
    metadata_hash: int = i64(tag=0, default=0)


@message(api_key=4, versions="0")
class ConsumerGroupPartitionMetadataKey:
    group_id: str = string()


@message()
class PartitionMetadata:
    partition: int = i32()
    racks: list[str] = array(string())


@message()
class TopicMetadata:
    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = i32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


@message(api_key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata] = array(TopicMetadata)


@message(api_key=5, versions="0")
class ConsumerGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message()
class ClassicProtocol:
    name: str = string()
    metadata: bytes = binary()


@message()
class ClassicMemberMetadata:
    session_timeout_ms: int = i32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


@message(api_key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = string(nullable=True)
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable=True)
    rebalance_timeout_ms: int = i32(default=-1)
    server_assignor: str | None = string(nullable=True)
    #: None for a member that uses the consumer protocol. The null is written: without the tag Kafka sees a
    #: classic member that has no protocols.
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable=True, tag=0, default=None
    )


@message(api_key=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(api_key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = i32()
    assignment_timestamp: int = i64(tag=0, default=0)


@message(api_key=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message()
class TopicPartition:
    topic_id: bytes = uuid()
    partitions: list[int] = array(i32())


@message(api_key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@message(api_key=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message()
class ConsumerGroupCurrentMemberAssignmentTopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(i32())
    assignment_epochs: list[int] | None = array(i32(), nullable=True, tag=0, default=[])


@message(api_key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = i32()
    previous_member_epoch: int = i32()
    state: int = i8()
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentTopicPartitions
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentTopicPartitions
    )


@message(api_key=10, versions="0")
class ShareGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(api_key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())


@message(api_key=11, versions="0")
class ShareGroupMetadataKey:
    group_id: str = string()


@message(api_key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    epoch: int = i32()
    metadata_hash: int = i64()


@message(api_key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(api_key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = i32()
    assignment_timestamp: int = i64(tag=0, default=0)


@message(api_key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(api_key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@message(api_key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message()
class ShareGroupCurrentMemberAssignmentTopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(i32())


@message(api_key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int = i32()
    previous_member_epoch: int = i32()
    state: int = i8()
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentTopicPartitions] = array(
        ShareGroupCurrentMemberAssignmentTopicPartitions
    )


@message(api_key=15, versions="0")
class ShareGroupStatePartitionMetadataKey:
    group_id: str = string()


@message()
class TopicPartitionsInfo:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(i32())


@message()
class ShareGroupStatePartitionMetadataTopicInfo:
    topic_id: bytes = uuid()
    topic_name: str = string()


@message(api_key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[ShareGroupStatePartitionMetadataTopicInfo] = array(
        ShareGroupStatePartitionMetadataTopicInfo
    )


@message(api_key=16, versions="0")
class ConsumerGroupRegularExpressionKey:
    group_id: str = string()
    regular_expression: str = string()


@message(api_key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = array(string())
    version: int = i64()
    timestamp: int = i64()


@message(api_key=17, versions="0")
class StreamsGroupMetadataKey:
    group_id: str = string()


@message()
class LastAssignmentConfig:
    key: str = string()
    value: str = string()


@message(api_key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    epoch: int = i32()
    metadata_hash: int = i64()
    validated_topology_epoch: int = i32(tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, nullable=True, tag=1, default=[]
    )


@message(api_key=19, versions="0")
class StreamsGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message()
class Endpoint:
    host: str = string()
    port: int = u16()


@message()
class KeyValue:
    key: str = string()
    value: str = string()


@message(api_key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = string(nullable=True)
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = i32(default=-1)
    topology_epoch: int = i32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct(Endpoint, nullable=True, default=None)
    client_tags: list[KeyValue] = array(KeyValue)


@message(api_key=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(api_key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = i32()
    assignment_timestamp: int = i64(tag=0, default=0)


@message(api_key=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message()
class StreamsGroupTargetAssignmentMemberTaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(i32())


@message(api_key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )


@message(api_key=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message()
class StreamsGroupCurrentMemberAssignmentTaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(i32())
    assignment_epochs: list[int] | None = array(i32(), nullable=True, tag=0, default=[])


@message(api_key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = i32()
    previous_member_epoch: int = i32()
    state: int = i8()
    active_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )


@message(api_key=23, versions="0")
class StreamsGroupTopologyKey:
    group_id: str = string()


@message()
class TopicConfig:
    key: str = string()
    value: str = string()


@message()
class StreamsGroupTopologyTopicInfo:
    name: str = string()
    partitions: int = i32()
    replication_factor: int = i16()
    topic_configs: list[TopicConfig] = array(TopicConfig)


@message()
class CopartitionGroup:
    source_topics: list[int] = array(i16())
    source_topic_regex: list[int] = array(i16())
    repartition_source_topics: list[int] = array(i16())


@message()
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string())
    source_topic_regex: list[str] = array(string())
    state_changelog_topics: list[StreamsGroupTopologyTopicInfo] = array(StreamsGroupTopologyTopicInfo)
    repartition_sink_topics: list[str] = array(string())
    repartition_source_topics: list[StreamsGroupTopologyTopicInfo] = array(StreamsGroupTopologyTopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@message(api_key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    epoch: int = i32()
    subtopologies: list[Subtopology] = array(Subtopology)
