"""FetchSnapshot (API key 59): a follower of a quorum downloads a snapshot piece by piece.

v0 flexible, v1 the replica's directory and the leader's endpoints (KIP-853).
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID, Records
from pykafka_broker.protocol.schema import array, i16, i32, i64, message, records, string, struct, u16, uuid


@message()
class SnapshotId:
    end_offset: int = i64()
    epoch: int = i32()


@message()
class FetchSnapshotRequestPartitionSnapshot:
    partition: int = i32()
    current_leader_epoch: int = i32()
    snapshot_id: SnapshotId = struct(SnapshotId)
    position: int = i64()
    replica_directory_id: bytes = uuid("1+", tag=0, default=ZERO_UUID)


@message()
class FetchSnapshotRequestTopicSnapshot:
    name: str = string(entity="topic_name")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = array(FetchSnapshotRequestPartitionSnapshot)


@message(api_key=59, versions="0-1", flexible="0+", listeners="controller")
class FetchSnapshotRequest:
    cluster_id: str | None = string(nullable=True, tag=0, default=None)
    replica_id: int = i32(default=-1, entity="broker_id")
    max_bytes: int = i32(default=0x7FFFFFFF)
    topics: list[FetchSnapshotRequestTopicSnapshot] = array(FetchSnapshotRequestTopicSnapshot)


@message()
class LeaderIdAndEpoch:
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()


@message()
class FetchSnapshotResponsePartitionSnapshot:
    index: int = i32()
    error_code: int = i16()
    snapshot_id: SnapshotId = struct(SnapshotId)
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, tag=0, default=None)
    size: int = i64()
    position: int = i64()
    unaligned_records: Records = records()


@message()
class FetchSnapshotResponseTopicSnapshot:
    name: str = string(entity="topic_name")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = array(FetchSnapshotResponsePartitionSnapshot)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = u16()


@message(api_key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    topics: list[FetchSnapshotResponseTopicSnapshot] = array(FetchSnapshotResponseTopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, default=[])
