"""ShareAcknowledge (API key 79): acknowledge records of share partitions without fetching (KIP-932).

v1 is the first served, flexible; v2 renewals of the acquisition lock.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, i64, message, string, struct, uuid


@message()
class AcknowledgementBatch:
    first_offset: int = i64()
    last_offset: int = i64()
    acknowledge_types: list[int] = array(i8())


@message()
class AcknowledgePartition:
    partition_index: int = i32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@message()
class AcknowledgeTopic:
    topic_id: bytes = uuid()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


@message(api_key=79, versions="1-2", flexible="0+", listeners="broker")
class ShareAcknowledgeRequest:
    group_id: str | None = string(nullable=True, default=None, entity="group_id")
    member_id: str | None = string(nullable=True)
    share_session_epoch: int = i32()
    is_renew_ack: bool = boolean("2+", default=False)
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


@message()
class LeaderIdAndEpoch:
    leader_id: int = i32()
    leader_epoch: int = i32()


@message()
class PartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)


@message()
class ShareAcknowledgeTopicResponse:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    rack: str | None = string(nullable=True, default=None)


@message(api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    acquisition_lock_timeout_ms: int = i32("2+", default=0)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
