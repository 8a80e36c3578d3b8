"""ReadShareGroupState (API key 84): between brokers, load the state of share partitions.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, string, uuid


@message()
class PartitionData:
    partition: int = i32()
    leader_epoch: int = i32()


@message()
class ReadStateData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=84, versions="0", flexible="0+", listeners="broker")
class ReadShareGroupStateRequest:
    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


@message()
class StateBatch:
    first_offset: int = i64()
    last_offset: int = i64()
    delivery_state: int = i8()
    delivery_count: int = i16()


@message()
class PartitionResult:
    partition: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    state_epoch: int = i32()
    start_offset: int = i64()
    state_batches: list[StateBatch] = array(StateBatch)


@message()
class ReadStateResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = array(ReadStateResult)
