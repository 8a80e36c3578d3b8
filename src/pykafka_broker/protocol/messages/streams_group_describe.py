"""StreamsGroupDescribe (API key 89): topology, members and tasks of streams groups (KIP-1071).

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string, struct, u16


@message(api_key=89, versions="0", flexible="0+", listeners="broker")
class StreamsGroupDescribeRequest:
    group_ids: list[str] = array(string(entity="group_id"))
    include_authorized_operations: bool = boolean()


@message()
class KeyValue:
    key: str = string()
    value: str = string()


@message()
class TopicInfo:
    name: str = string(entity="topic_name")
    partitions: int = i32()
    replication_factor: int = i16()
    topic_configs: list[KeyValue] = array(KeyValue)


@message()
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string(entity="topic_name"))
    repartition_sink_topics: list[str] = array(string(entity="topic_name"))
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


@message()
class Topology:
    epoch: int = i32()
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable=True, default=None)


@message()
class Endpoint:
    host: str = string()
    port: int = u16()


@message()
class TaskOffset:
    subtopology_id: str = string()
    partition: int = i32()
    offset: int = i64()


@message()
class TaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(i32())


@message()
class Assignment:
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


@message()
class Member:
    member_id: str = string()
    member_epoch: int = i32()
    instance_id: str | None = string(nullable=True, default=None)
    rack_id: str | None = string(nullable=True, default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = i32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct(Endpoint, nullable=True, default=None)
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    is_classic: bool = boolean()


@message()
class DescribedGroup:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    group_id: str = string(entity="group_id")
    group_state: str = string()
    group_epoch: int = i32()
    assignment_epoch: int = i32()
    topology: Topology | None = struct(Topology, nullable=True, default=None)
    members: list[Member] = array(Member)
    authorized_operations: int = i32(default=-0x80000000)


@message(api_key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = i32(default=0)
    groups: list[DescribedGroup] = array(DescribedGroup)
