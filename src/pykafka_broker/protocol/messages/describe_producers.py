"""DescribeProducers (API key 61): the producers that a partition's leader remembers.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string


@message()
class TopicRequest:
    name: str = string(entity="topic_name")
    partition_indexes: list[int] = array(i32())


@message(api_key=61, versions="0", flexible="0+", listeners="broker")
class DescribeProducersRequest:
    topics: list[TopicRequest] = array(TopicRequest)


@message()
class ProducerState:
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i32()
    last_sequence: int = i32(default=-1)
    last_timestamp: int = i64(default=-1)
    coordinator_epoch: int = i32()
    current_txn_start_offset: int = i64(default=-1)


@message()
class PartitionResponse:
    partition_index: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    active_producers: list[ProducerState] = array(ProducerState)


@message()
class TopicResponse:
    name: str = string(entity="topic_name")
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: int = i32(default=0)
    topics: list[TopicResponse] = array(TopicResponse)
