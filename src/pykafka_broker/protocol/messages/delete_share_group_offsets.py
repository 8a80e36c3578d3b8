"""DeleteShareGroupOffsets (API key 92): forget an empty share group's topics.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string, uuid


@message()
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = string(entity="topic_name")


@message(api_key=92, versions="0", flexible="0+", listeners="broker")
class DeleteShareGroupOffsetsRequest:
    group_id: str = string(entity="group_id")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


@message()
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = string(entity="topic_name")
    topic_id: bytes = uuid()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic)
