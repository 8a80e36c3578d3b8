"""ListOffsets (API key 2): the offset for a timestamp, or for one of the special timestamps.

v1 one offset instead of a list, v2 isolation level, v4 leader epochs, v5 may answer OFFSET_NOT_AVAILABLE, v6
flexible; new special timestamps: v7 maximum timestamp (-3), v8 local log start (-4), v9 last tiered (-5), v11
earliest pending upload (-6). v10 lets the broker look into tiered storage asynchronously, bounded by a
timeout.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, string


@message()
class ListOffsetsPartition:
    partition_index: int = i32()
    current_leader_epoch: int = i32("4+", default=-1)
    #: Milliseconds, or one of the negative special timestamps.
    timestamp: int = i64()


@message()
class ListOffsetsTopic:
    name: str = string(entity="topic_name")
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(api_key=2, versions="1-11", flexible="6+", listeners="broker")
class ListOffsetsRequest:
    replica_id: int = i32(entity="broker_id")
    isolation_level: int = i8("2+", default=0)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = i32("10+", default=0)


@message()
class ListOffsetsPartitionResponse:
    partition_index: int = i32()
    error_code: int = i16()
    timestamp: int = i64(default=-1)
    offset: int = i64(default=-1)
    leader_epoch: int = i32("4+", default=-1)


@message()
class ListOffsetsTopicResponse:
    name: str = string(entity="topic_name")
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(api_key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: int = i32("2+", default=0)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
