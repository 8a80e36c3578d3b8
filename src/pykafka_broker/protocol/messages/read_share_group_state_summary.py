"""ReadShareGroupStateSummary (API key 87): between brokers, start offsets and epochs of share partitions.

v0 flexible, v1 how many deliveries are complete.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, uuid


@message()
class PartitionData:
    partition: int = i32()
    leader_epoch: int = i32()


@message()
class ReadStateSummaryData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=87, versions="0-1", flexible="0+", listeners="broker")
class ReadShareGroupStateSummaryRequest:
    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


@message()
class PartitionResult:
    partition: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    state_epoch: int = i32()
    leader_epoch: int = i32()
    start_offset: int = i64()
    delivery_complete_count: int = i32("1+", default=-1)


@message()
class ReadStateSummaryResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
