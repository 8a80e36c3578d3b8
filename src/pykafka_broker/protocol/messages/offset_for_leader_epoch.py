"""OffsetForLeaderEpoch (API key 23): the end offset of a leader epoch, to find where logs diverge.

v2 is the oldest served (current leader epoch for fencing); v3 replica id, v4 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string


@message()
class OffsetForLeaderPartition:
    partition: int = i32()
    current_leader_epoch: int = i32(default=-1)
    leader_epoch: int = i32()


@message()
class OffsetForLeaderTopic:
    topic: str = string(entity="topic_name")
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message(api_key=23, versions="2-4", flexible="4+", listeners="broker")
class OffsetForLeaderEpochRequest:
    replica_id: int = i32("3+", default=-2, entity="broker_id")
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


@message()
class EpochEndOffset:
    error_code: int = i16()
    partition: int = i32()
    leader_epoch: int = i32(default=-1)
    end_offset: int = i64(default=-1)


@message()
class OffsetForLeaderTopicResult:
    topic: str = string(entity="topic_name")
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@message(api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = i32(default=0)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
