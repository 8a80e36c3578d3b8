"""Fetch (API key 1): read record batches, for consumers and for replicas.

v4 is the oldest served (read_committed, records v2); v5 log start offset, v7 incremental sessions, v9 leader
epochs, v10 zstd, v11 rack and preferred replica, v12 flexible with the last fetched epoch and diverging
epochs, v13 topic ids, v14 may answer OFFSET_MOVED_TO_TIERED_STORAGE, v15 replica state instead of replica id,
v16 node endpoints, v17 the replica's directory id, v18 the follower's high watermark.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID, Records
from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, records, string, struct, uuid


@message()
class ReplicaState:
    replica_id: int = i32(default=-1, entity="broker_id")
    replica_epoch: int = i64(default=-1)


@message()
class FetchPartition:
    partition: int = i32()
    current_leader_epoch: int = i32("9+", default=-1)
    fetch_offset: int = i64()
    last_fetched_epoch: int = i32("12+", default=-1)
    log_start_offset: int = i64("5+", default=-1)
    partition_max_bytes: int = i32()
    replica_directory_id: bytes = uuid("17+", tag=0, default=ZERO_UUID)
    high_watermark: int = i64("18+", tag=1, default=0x7FFFFFFFFFFFFFFF)


@message()
class FetchTopic:
    topic: str = string("4-12", default="", entity="topic_name")
    topic_id: bytes = uuid("13+", default=ZERO_UUID)
    partitions: list[FetchPartition] = array(FetchPartition)


@message()
class ForgottenTopic:
    topic: str = string("7-12", default="", entity="topic_name")
    topic_id: bytes = uuid("13+", default=ZERO_UUID)
    partitions: list[int] = array(i32())


@message(api_key=1, versions="4-18", flexible="12+", listeners="broker controller")
class FetchRequest:
    cluster_id: str | None = string("12+", nullable=True, tag=0, default=None)
    #: -1 for consumers. From v15 on a replica says who it is in `replica_state`.
    replica_id: int = i32("4-14", default=-1, entity="broker_id")
    replica_state: ReplicaState | None = struct(ReplicaState, "15+", tag=1, default=None)
    max_wait_ms: int = i32()
    min_bytes: int = i32()
    max_bytes: int = i32(default=0x7FFFFFFF)
    #: 0 reads everything, 1 stops before the first open transaction.
    isolation_level: int = i8(default=0)
    session_id: int = i32("7+", default=0)
    #: -1 wants no session, 0 a new one, more continues `session_id`.
    session_epoch: int = i32("7+", default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+", default=[])
    rack_id: str = string("11+", default="")


@message()
class EpochEndOffset:
    epoch: int = i32(default=-1)
    end_offset: int = i64(default=-1)


@message()
class LeaderIdAndEpoch:
    leader_id: int = i32(default=-1, entity="broker_id")
    leader_epoch: int = i32(default=-1)


@message()
class SnapshotId:
    end_offset: int = i64(default=-1)
    epoch: int = i32(default=-1)


@message()
class AbortedTransaction:
    producer_id: int = i64(entity="producer_id")
    first_offset: int = i64()


@message()
class PartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    high_watermark: int = i64()
    last_stable_offset: int = i64(default=-1)
    log_start_offset: int = i64("5+", default=-1)
    diverging_epoch: EpochEndOffset | None = struct(EpochEndOffset, "12+", tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, "12+", tag=1, default=None)
    snapshot_id: SnapshotId | None = struct(SnapshotId, "12+", tag=2, default=None)
    #: None unless the consumer reads committed records only.
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, nullable=True)
    preferred_read_replica: int = i32("11+", default=-1, entity="broker_id")
    records: Records = records(nullable=True)


@message()
class FetchableTopicResponse:
    topic: str = string("4-12", default="", entity="topic_name")
    topic_id: bytes = uuid("13+", default=ZERO_UUID)
    partitions: list[PartitionData] = array(PartitionData)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    rack: str | None = string(nullable=True, default=None)


@message(api_key=1, versions="4-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16("7+", default=0)
    session_id: int = i32("7+", default=0)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0, default=[])
