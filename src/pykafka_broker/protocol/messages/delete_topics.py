"""DeleteTopics (API key 20): remove topics.

v1 throttle time, v3 may answer TOPIC_DELETION_DISABLED, v4 flexible, v5 error messages, v6 by name or by
topic id.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, i16, i32, message, string, uuid


@message()
class DeleteTopicState:
    #: None when the topic is named by its id.
    name: str | None = string(nullable=True, default=None, entity="topic_name")
    topic_id: bytes = uuid()


@message(api_key=20, versions="1-6", flexible="4+", listeners="broker controller")
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+", default=[])
    topic_names: list[str] = array(string(entity="topic_name"), "1-5", default=[])
    timeout_ms: int = i32()


@message()
class DeletableTopicResult:
    name: str | None = string(nullable="6+", entity="topic_name")
    topic_id: bytes = uuid("6+", default=ZERO_UUID)
    error_code: int = i16()
    error_message: str | None = string("5+", nullable=True, default=None)


@message(api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: int = i32(default=0)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
