"""DescribeTopicPartitions (API key 75): topics page by page, with eligible leader replicas.

v0 is the only version, flexible. A cursor says where the next page starts.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string, struct, uuid


@message()
class TopicRequest:
    name: str = string(entity="topic_name")


@message()
class Cursor:
    topic_name: str = string(entity="topic_name")
    partition_index: int = i32()


@message(api_key=75, versions="0", flexible="0+", listeners="broker")
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = i32(default=2000)
    cursor: Cursor | None = struct(Cursor, nullable=True, default=None)


@message()
class DescribeTopicPartitionsResponsePartition:
    error_code: int = i16()
    partition_index: int = i32()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32(default=-1)
    replica_nodes: list[int] = array(i32(entity="broker_id"))
    isr_nodes: list[int] = array(i32(entity="broker_id"))
    eligible_leader_replicas: list[int] | None = array(i32(entity="broker_id"), nullable=True, default=None)
    last_known_elr: list[int] | None = array(i32(entity="broker_id"), nullable=True, default=None)
    offline_replicas: list[int] = array(i32(entity="broker_id"))


@message()
class DescribeTopicPartitionsResponseTopic:
    error_code: int = i16()
    name: str | None = string(nullable=True, entity="topic_name")
    topic_id: bytes = uuid()
    is_internal: bool = boolean(default=False)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = i32(default=-0x80000000)


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = i32(default=0)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, nullable=True, default=None)
