"""OffsetDelete (API key 47): forget a group's positions in some partitions.

v0 is the only version and not flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message()
class OffsetDeleteRequestPartition:
    partition_index: int = i32()


@message()
class OffsetDeleteRequestTopic:
    name: str = string(entity="topic_name")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message(api_key=47, versions="0", listeners="broker")
class OffsetDeleteRequest:
    group_id: str = string(entity="group_id")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@message()
class OffsetDeleteResponsePartition:
    partition_index: int = i32()
    error_code: int = i16()


@message()
class OffsetDeleteResponseTopic:
    name: str = string(entity="topic_name")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@message(api_key=47, versions="0")
class OffsetDeleteResponse:
    error_code: int = i16()
    throttle_time_ms: int = i32(default=0)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
