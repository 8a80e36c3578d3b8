"""The topics of conversations: those that do not exist, and how records and topics go."""

from __future__ import annotations

from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

#: The id of no topic.
NO_TOPIC = b"no topic has me!"


def nowhere(talk: Talk) -> Topic:
    """A topic that does not exist."""
    return Topic(talk.name("missing"), NO_TOPIC)


def unknown_topic(talk: Talk) -> E:
    """The error that says so: from version 13 on, Produce and Fetch name topics by their ids."""
    return E.UNKNOWN_TOPIC_ID if talk.version >= 13 else E.UNKNOWN_TOPIC_OR_PARTITION


def without_start(talk: Talk, topic: Topic, before: int) -> None:
    """Delete the records before an offset."""
    asked = DeleteRecordsPartition(partition_index=0, offset=before)
    topics = [DeleteRecordsTopic(name=topic.name, partitions=[asked])]
    talk.do(DeleteRecordsRequest(topics=topics, timeout_ms=10_000))


def without(talk: Talk, topic: Topic) -> None:
    """Delete a topic, and see that the broker knows."""
    gone = [DeleteTopicState(name=topic.name, topic_id=ZERO_UUID)]
    talk.do(DeleteTopicsRequest(topics=gone, topic_names=[], timeout_ms=10_000))
    talk.created.remove(topic.name)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False)
    talk.ask(asked, E.UNKNOWN_TOPIC_OR_PARTITION, until=lambda answer: answer.topics[0].error_code != E.NONE)
