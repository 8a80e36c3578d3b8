"""ShareFetch (API key 78): acquire records of share partitions, and acknowledge earlier ones (KIP-932).

v1 is the first served, flexible; v2 strict acquisition limits and renewals of the acquisition lock.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import Records
from pykafka_broker.protocol.schema import (
    array,
    boolean,
    i8,
    i16,
    i32,
    i64,
    message,
    records,
    string,
    struct,
    uuid,
)


@message()
class AcknowledgementBatch:
    first_offset: int = i64()
    last_offset: int = i64()
    acknowledge_types: list[int] = array(i8())


@message()
class FetchPartition:
    partition_index: int = i32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@message()
class FetchTopic:
    topic_id: bytes = uuid()
    partitions: list[FetchPartition] = array(FetchPartition)


@message()
class ForgottenTopic:
    topic_id: bytes = uuid()
    partitions: list[int] = array(i32())


@message(api_key=78, versions="1-2", flexible="0+", listeners="broker")
class ShareFetchRequest:
    group_id: str | None = string(nullable=True, default=None, entity="group_id")
    member_id: str | None = string(nullable=True)
    share_session_epoch: int = i32()
    max_wait_ms: int = i32()
    min_bytes: int = i32()
    max_bytes: int = i32(default=0x7FFFFFFF)
    max_records: int = i32()
    batch_size: int = i32()
    share_acquire_mode: int = i8("2+", default=0)
    is_renew_ack: bool = boolean("2+", default=False)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


@message()
class LeaderIdAndEpoch:
    leader_id: int = i32()
    leader_epoch: int = i32()


@message()
class AcquiredRecords:
    first_offset: int = i64()
    last_offset: int = i64()
    delivery_count: int = i16()


@message()
class PartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    acknowledge_error_code: int = i16()
    acknowledge_error_message: str | None = string(nullable=True, default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)
    records: Records = records()
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@message()
class ShareFetchableTopicResponse:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    rack: str | None = string(nullable=True, default=None)


@message(api_key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    acquisition_lock_timeout_ms: int = i32()
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
