"""DescribeShareGroupOffsets (API key 90): where share groups start reading.

v0 flexible, v1 the lag.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, uuid


@message()
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message()
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = string(entity="group_id")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable=True
    )


@message(api_key=90, versions="0-1", flexible="0+", listeners="broker")
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup)


@message()
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = i32()
    start_offset: int = i64()
    leader_epoch: int = i32()
    lag: int = i64("1+", default=-1)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = string(entity="topic_name")
    topic_id: bytes = uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition
    )


@message()
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = string(entity="group_id")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: int = i32(default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup)
