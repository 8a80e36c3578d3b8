"""CreatePartitions (API key 37): give topics more partitions.

v2 flexible, v3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string


@message()
class CreatePartitionsAssignment:
    broker_ids: list[int] = array(i32(entity="broker_id"))


@message()
class CreatePartitionsTopic:
    name: str = string(entity="topic_name")
    #: The number of partitions that the topic will have in total.
    count: int = i32()
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable=True)


@message(api_key=37, versions="0-3", flexible="2+", listeners="broker controller")
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = i32()
    validate_only: bool = boolean()


@message()
class CreatePartitionsTopicResult:
    name: str = string(entity="topic_name")
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: int = i32(default=0)
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
