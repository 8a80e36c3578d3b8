"""StreamsGroupHeartbeat (API key 88): a Kafka Streams client joins, stays in and leaves a group (KIP-1071).

v0 is the only version, flexible. The first heartbeat brings the topology.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, i64, message, string, struct, u16


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
class CopartitionGroup:
    source_topics: list[int] = array(i16())
    source_topic_regex: list[int] = array(i16())
    repartition_source_topics: list[int] = array(i16())


@message()
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string(entity="topic_name"))
    source_topic_regex: list[str] = array(string())
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string(entity="topic_name"))
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@message()
class Topology:
    epoch: int = i32()
    subtopologies: list[Subtopology] = array(Subtopology)


@message()
class TaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(i32())


@message()
class Endpoint:
    host: str = string()
    port: int = u16()


@message()
class TaskOffset:
    subtopology_id: str = string()
    partition: int = i32()
    offset: int = i64()


@message(api_key=88, versions="0", flexible="0+", listeners="broker")
class StreamsGroupHeartbeatRequest:
    group_id: str = string(entity="group_id")
    member_id: str = string()
    member_epoch: int = i32()
    endpoint_information_epoch: int = i32()
    instance_id: str | None = string(nullable=True, default=None)
    rack_id: str | None = string(nullable=True, default=None)
    rebalance_timeout_ms: int = i32(default=-1)
    topology: Topology | None = struct(Topology, nullable=True, default=None)
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable=True, default=None)
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable=True, default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable=True, default=None)
    process_id: str | None = string(nullable=True, default=None)
    user_endpoint: Endpoint | None = struct(Endpoint, nullable=True, default=None)
    client_tags: list[KeyValue] | None = array(KeyValue, nullable=True, default=None)
    task_offsets: list[TaskOffset] | None = array(TaskOffset, nullable=True, default=None)
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, nullable=True, default=None)
    shutdown_application: bool = boolean(default=False)


@message()
class Status:
    status_code: int = i8()
    status_detail: str = string()


@message()
class TopicPartition:
    topic: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message()
class EndpointToPartitions:
    user_endpoint: Endpoint = struct(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)
    standby_partitions: list[TopicPartition] = array(TopicPartition)


@message(api_key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str = string()
    member_epoch: int = i32()
    heartbeat_interval_ms: int = i32()
    acceptable_recovery_lag: int = i32()
    task_offset_interval_ms: int = i32()
    status: list[Status] | None = array(Status, nullable=True)
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable=True, default=None)
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable=True, default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable=True, default=None)
    endpoint_information_epoch: int = i32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable=True, default=None
    )
