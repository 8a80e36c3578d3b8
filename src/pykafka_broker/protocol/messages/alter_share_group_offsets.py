"""AlterShareGroupOffsets (API key 91): set where an empty share group starts reading.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, uuid


@message()
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = i32()
    start_offset: int = i64()


@message()
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = string(entity="topic_name")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(AlterShareGroupOffsetsRequestPartition)


@message(api_key=91, versions="0", flexible="0+", listeners="broker")
class AlterShareGroupOffsetsRequest:
    group_id: str = string(entity="group_id")
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


@message()
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = string(entity="topic_name")
    topic_id: bytes = uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(AlterShareGroupOffsetsResponsePartition)


@message(api_key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic)
