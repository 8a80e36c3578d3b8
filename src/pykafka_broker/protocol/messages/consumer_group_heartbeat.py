"""ConsumerGroupHeartbeat (API key 68): a consumer joins, stays in and leaves a group (KIP-848).

v0 flexible, v1 subscription by regular expression and member ids made by the client.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string, struct, uuid


@message()
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(i32())


@message(api_key=68, versions="0-1", flexible="0+", listeners="broker")
class ConsumerGroupHeartbeatRequest:
    group_id: str = string(entity="group_id")
    member_id: str = string()
    member_epoch: int = i32()
    instance_id: str | None = string(nullable=True, default=None)
    rack_id: str | None = string(nullable=True, default=None)
    rebalance_timeout_ms: int = i32(default=-1)
    subscribed_topic_names: list[str] | None = array(string(entity="topic_name"), nullable=True, default=None)
    subscribed_topic_regex: str | None = string("1+", nullable=True, default=None)
    server_assignor: str | None = string(nullable=True, default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=True, default=None)


@message()
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True, default=None)
    member_epoch: int = i32()
    heartbeat_interval_ms: int = i32()
    assignment: Assignment | None = struct(Assignment, nullable=True, default=None)
