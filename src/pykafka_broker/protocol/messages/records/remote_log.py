"""The records of tiered storage in `__remote_log_metadata`: where the segments of a partition were copied to.

Values start with the record type (`api_key`) and the version, both unsigned varints.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, boolean, i8, i32, i64, message, string, struct, uuid


@message()
class TopicIdPartitionEntry:
    name: str = string()
    id: bytes = uuid()
    partition: int = i32()


@message()
class RemoteLogSegmentIdEntry:
    topic_id_partition: TopicIdPartitionEntry = struct(TopicIdPartitionEntry)
    id: bytes = uuid()


@message()
class SegmentLeaderEpochEntry:
    leader_epoch: int = i32()
    offset: int = i64()


@message(api_key=0, versions="0", flexible="0+")
class RemoteLogSegmentMetadataRecord:
    remote_log_segment_id: RemoteLogSegmentIdEntry = struct(RemoteLogSegmentIdEntry)
    start_offset: int = i64()
    end_offset: int = i64()
    broker_id: int = i32()
    max_timestamp_ms: int = i64()
    event_timestamp_ms: int = i64()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array(SegmentLeaderEpochEntry)
    segment_size_in_bytes: int = i32()
    custom_metadata: bytes | None = binary(nullable=True, default=None)
    remote_log_segment_state: int = i8()
    txn_index_empty: bool = boolean(tag=0, default=False)


@message(api_key=1, versions="0", flexible="0+")
class RemoteLogSegmentMetadataUpdateRecord:
    remote_log_segment_id: RemoteLogSegmentIdEntry = struct(RemoteLogSegmentIdEntry)
    broker_id: int = i32()
    event_timestamp_ms: int = i64()
    custom_metadata: bytes | None = binary(nullable=True, default=None)
    remote_log_segment_state: int = i8()


@message(api_key=2, versions="0", flexible="0+")
class RemotePartitionDeleteMetadataRecord:
    topic_id_partition: TopicIdPartitionEntry = struct(TopicIdPartitionEntry)
    broker_id: int = i32()
    event_timestamp_ms: int = i64()
    remote_partition_delete_state: int = i8()


@message(api_key=3, versions="0", flexible="0+")
class RemoteLogSegmentMetadataSnapshotRecord:
    segment_id: bytes = uuid()
    start_offset: int = i64()
    end_offset: int = i64()
    broker_id: int = i32()
    max_timestamp_ms: int = i64()
    event_timestamp_ms: int = i64()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array(SegmentLeaderEpochEntry)
    segment_size_in_bytes: int = i32()
    custom_metadata: bytes | None = binary(nullable=True, default=None)
    remote_log_segment_state: int = i8()
    txn_index_empty: bool = boolean(tag=0, default=False)
