"""Produce (API key 0): append record batches to partitions.

v3 is the oldest that Kafka 4 serves, though brokers advertise 0 because old librdkafka needs to see that; v4
may answer KAFKA_STORAGE_ERROR, v5 returns the log start offset, v7 allows zstd, v8 names the records that
spoilt a batch, v9 flexible, v10 tells the new leader and its endpoint, v11 may answer TRANSACTION_ABORTABLE,
v12 adds the partitions to the transaction by itself (transaction.version 2), v13 topic ids instead of names.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID, Records
from pykafka_broker.protocol.schema import array, i16, i32, i64, message, records, string, struct, uuid


@message()
class PartitionProduceData:
    index: int = i32()
    records: Records = records(nullable=True)


@message()
class TopicProduceData:
    name: str = string("3-12", default="", entity="topic_name")
    topic_id: bytes = uuid("13+", default=ZERO_UUID)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(api_key=0, versions="3-13", flexible="9+", listeners="broker")
class ProduceRequest:
    transactional_id: str | None = string(nullable=True, default=None, entity="transactional_id")
    #: 0 wants no answer at all, 1 the leader's write, -1 that of all in-sync replicas.
    acks: int = i16()
    timeout_ms: int = i32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@message()
class BatchIndexAndErrorMessage:
    batch_index: int = i32()
    batch_index_error_message: str | None = string(nullable=True, default=None)


@message()
class LeaderIdAndEpoch:
    leader_id: int = i32(default=-1, entity="broker_id")
    leader_epoch: int = i32(default=-1)


@message()
class PartitionProduceResponse:
    index: int = i32()
    error_code: int = i16()
    base_offset: int = i64()
    log_append_time_ms: int = i64(default=-1)
    log_start_offset: int = i64("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", default=[])
    error_message: str | None = string("8+", nullable=True, default=None)
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, "10+", tag=0, default=None)


@message()
class TopicProduceResponse:
    name: str = string("3-12", default="", entity="topic_name")
    topic_id: bytes = uuid("13+", default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    rack: str | None = string(nullable=True, default=None)


@message(api_key=0, versions="3-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = i32(default=0)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0, default=[])
