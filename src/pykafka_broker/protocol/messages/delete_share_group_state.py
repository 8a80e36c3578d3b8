"""DeleteShareGroupState (API key 86): between brokers, forget the state of share partitions.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string, uuid


@message()
class PartitionData:
    partition: int = i32()


@message()
class DeleteStateData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=86, versions="0", flexible="0+", listeners="broker")
class DeleteShareGroupStateRequest:
    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


@message()
class PartitionResult:
    partition: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class DeleteStateResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = array(DeleteStateResult)
