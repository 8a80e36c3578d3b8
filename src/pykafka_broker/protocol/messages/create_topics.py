"""CreateTopics (API key 19): make topics, with partitions counted or assigned.

v2 is the oldest served; v4 lets the broker choose partitions and replication factor (-1), v5 flexible and
returns the topic's configuration, v6 may answer THROTTLING_QUOTA_EXCEEDED, v7 returns the topic id.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, message, string, uuid


@message()
class CreatableReplicaAssignment:
    partition_index: int = i32()
    broker_ids: list[int] = array(i32(entity="broker_id"))


@message()
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable=True)


@message()
class CreatableTopic:
    name: str = string(entity="topic_name")
    #: -1 for the broker's default, or when `assignments` says it.
    num_partitions: int = i32()
    #: -1 for the broker's default, or when `assignments` says it.
    replication_factor: int = i16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(api_key=19, versions="2-7", flexible="5+", listeners="broker controller")
class CreateTopicsRequest:
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = i32(default=60000)
    validate_only: bool = boolean(default=False)


@message()
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable=True)
    read_only: bool = boolean()
    config_source: int = i8(default=-1)
    is_sensitive: bool = boolean()


@message()
class CreatableTopicResult:
    name: str = string(entity="topic_name")
    topic_id: bytes = uuid("7+", default=ZERO_UUID)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    #: The error code if the caller may not see `configs`, which is then None; else 0.
    topic_config_error_code: int = i16("5+", tag=0, default=0)
    num_partitions: int = i32("5+", default=-1)
    replication_factor: int = i16("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable=True, default=None
    )


@message(api_key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: int = i32(default=0)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
