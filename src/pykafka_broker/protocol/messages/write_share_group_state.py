"""WriteShareGroupState (API key 85): between brokers, store the state of share partitions.

v0 flexible, v1 how many deliveries are complete.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, string, uuid


@message()
class StateBatch:
    first_offset: int = i64()
    last_offset: int = i64()
    delivery_state: int = i8()
    delivery_count: int = i16()


@message()
class PartitionData:
    partition: int = i32()
    state_epoch: int = i32()
    leader_epoch: int = i32()
    start_offset: int = i64()
    delivery_complete_count: int = i32("1+", default=-1)
    state_batches: list[StateBatch] = array(StateBatch)


@message()
class WriteStateData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=85, versions="0-1", flexible="0+", listeners="broker")
class WriteShareGroupStateRequest:
    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


@message()
class PartitionResult:
    partition: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class WriteStateResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = array(WriteStateResult)
