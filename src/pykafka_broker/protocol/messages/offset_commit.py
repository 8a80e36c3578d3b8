"""OffsetCommit (API key 8): store a group's positions.

v2 is the oldest served; v3 throttle time, v5 drops the retention time, v6 leader epochs, v7 static members,
v8 flexible, v9 members of consumer groups (KIP-848) with their epochs, v10 topic ids instead of names.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, uuid


@message()
class OffsetCommitRequestPartition:
    partition_index: int = i32()
    committed_offset: int = i64()
    committed_leader_epoch: int = i32("6+", default=-1)
    committed_metadata: str | None = string(nullable=True)


@message()
class OffsetCommitRequestTopic:
    name: str = string("2-9", default="", entity="topic_name")
    topic_id: bytes = uuid("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(api_key=8, versions="2-10", flexible="8+", listeners="broker")
class OffsetCommitRequest:
    group_id: str = string(entity="group_id")
    generation_id_or_member_epoch: int = i32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = string("7+", nullable=True, default=None)
    retention_time_ms: int = i64("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@message()
class OffsetCommitResponsePartition:
    partition_index: int = i32()
    error_code: int = i16()


@message()
class OffsetCommitResponseTopic:
    name: str = string("2-9", default="", entity="topic_name")
    topic_id: bytes = uuid("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(api_key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: int = i32("3+", default=0)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
