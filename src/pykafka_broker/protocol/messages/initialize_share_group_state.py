"""InitializeShareGroupState (API key 83): between brokers, begin the state of share partitions.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, uuid


@message()
class PartitionData:
    partition: int = i32()
    state_epoch: int = i32()
    start_offset: int = i64()


@message()
class InitializeStateData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=83, versions="0", flexible="0+", listeners="broker")
class InitializeShareGroupStateRequest:
    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


@message()
class PartitionResult:
    partition: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class InitializeStateResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = array(InitializeStateResult)
