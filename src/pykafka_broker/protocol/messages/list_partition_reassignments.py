"""ListPartitionReassignments (API key 46): the reassignments that are under way.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message()
class ListPartitionReassignmentsTopics:
    name: str = string(entity="topic_name")
    partition_indexes: list[int] = array(i32())


@message(api_key=46, versions="0", flexible="0+", listeners="broker controller")
class ListPartitionReassignmentsRequest:
    timeout_ms: int = i32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable=True, default=None
    )


@message()
class OngoingPartitionReassignment:
    partition_index: int = i32()
    replicas: list[int] = array(i32(entity="broker_id"))
    adding_replicas: list[int] = array(i32(entity="broker_id"))
    removing_replicas: list[int] = array(i32(entity="broker_id"))


@message()
class OngoingTopicReassignment:
    name: str = string(entity="topic_name")
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
