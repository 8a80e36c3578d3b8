"""AlterPartitionReassignments (API key 45): give partitions new replicas, or call that off.

v0 flexible, v1 may forbid a change of the replication factor.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string


@message()
class ReassignablePartition:
    partition_index: int = i32()
    replicas: list[int] | None = array(i32(entity="broker_id"), nullable=True, default=None)


@message()
class ReassignableTopic:
    name: str = string(entity="topic_name")
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message(api_key=45, versions="0-1", flexible="0+", listeners="broker controller")
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = i32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@message()
class ReassignablePartitionResponse:
    partition_index: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class ReassignableTopicResponse:
    name: str = string(entity="topic_name")
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message(api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = i32(default=0)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
