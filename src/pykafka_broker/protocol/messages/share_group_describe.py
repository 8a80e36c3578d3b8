"""ShareGroupDescribe (API key 77): state and members of share groups (KIP-932).

v1 is the first served, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string, struct, uuid


@message(api_key=77, versions="1", flexible="0+", listeners="broker")
class ShareGroupDescribeRequest:
    group_ids: list[str] = array(string(entity="group_id"))
    include_authorized_operations: bool = boolean()


@message()
class TopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message()
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message()
class Member:
    member_id: str = string()
    rack_id: str | None = string(nullable=True, default=None)
    member_epoch: int = i32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string(entity="topic_name"))
    assignment: Assignment = struct(Assignment)


@message()
class DescribedGroup:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    group_id: str = string(entity="group_id")
    group_state: str = string()
    group_epoch: int = i32()
    assignment_epoch: int = i32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = i32(default=-0x80000000)


@message(api_key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    throttle_time_ms: int = i32(default=0)
    groups: list[DescribedGroup] = array(DescribedGroup)
