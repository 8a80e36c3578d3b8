"""ShareGroupHeartbeat (API key 76): a consumer joins, stays in and leaves a share group (KIP-932).

v1 is the first served, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string, struct, uuid


@message(api_key=76, versions="1", flexible="0+", listeners="broker")
class ShareGroupHeartbeatRequest:
    group_id: str = string(entity="group_id")
    member_id: str = string()
    member_epoch: int = i32()
    rack_id: str | None = string(nullable=True, default=None)
    subscribed_topic_names: list[str] | None = array(string(entity="topic_name"), nullable=True, default=None)


@message()
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(i32())


@message()
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True, default=None)
    member_epoch: int = i32()
    heartbeat_interval_ms: int = i32()
    assignment: Assignment | None = struct(Assignment, nullable=True, default=None)
