"""DeleteTopics: by name, or from version 6 on by id."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_ID = bytes.fromhex("0123456789abcdef0123456789abcdef")


def delete(*names: str, timeout_ms: int = 10_000) -> DeleteTopicsRequest:
    """By name, in every version."""
    return DeleteTopicsRequest(
        topic_names=list(names),
        topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names],
        timeout_ms=timeout_ms,
    )


def delete_ids(*topics: tuple[str | None, bytes]) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics],
        timeout_ms=10_000,
    )


def still_there(talk: Talk, *names: str) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    talk.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))


@conversation
def a_topic_is_deleted(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    talk.ask(delete(topic.name))
    talk.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        until=lambda answer: answer.topics[0].error_code != 0,
    )


@conversation
def a_deleted_topic_has_no_offsets(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"gone")
    talk.ask(delete(topic.name))
    asked = [
        ListOffsetsTopic(name=topic.name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    ]
    talk.ask(
        ListOffsetsRequest(replica_id=-1, topics=asked),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        until=lambda answer: answer.topics[0].partitions[0].error_code != 0,
    )


@conversation
def a_topic_that_is_created_again_is_empty(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"gone")
    talk.ask(delete(topic.name))
    again = talk.topic()
    asked = [
        ListOffsetsTopic(name=again.name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    ]
    talk.ask(
        ListOffsetsRequest(replica_id=-1, topics=asked),
        # For a moment Apache still answers from the old one.
        until=lambda answer: answer.topics[0].partitions[0].offset == 0,
    )


@conversation
def several_topics_are_deleted(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("b", "a", "c")]
    talk.ask(delete(*names))


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(delete())


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(delete(talk.name()), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def an_unknown_topic_beside_a_known_one(talk: Talk) -> None:
    talk.ask(
        delete(talk.name("missing"), talk.topic().name),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )


@conversation
def a_topic_named_twice_is_refused_and_stays(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(delete(name, name), E.INVALID_REQUEST)
    still_there(talk, name)


@conversation
def an_unknown_topic_named_twice(talk: Talk) -> None:
    talk.ask(delete(talk.name(), talk.name()), E.INVALID_REQUEST)


@conversation
def what_cannot_be_a_name(talk: Talk) -> None:
    for name in ("", ".", "two words"):
        talk.ask(delete(name), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def the_metadata_log(talk: Talk) -> None:
    talk.ask(delete("__cluster_metadata"), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_topic_is_deleted_only_once(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(delete(name))
    talk.ask(delete(name), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_timeout_of_nothing(talk: Talk) -> None:
    talk.ask(delete(talk.topic().name, timeout_ms=0), E.REQUEST_TIMED_OUT)


@conversation("6+")
def a_topic_is_deleted_by_its_id(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(delete_ids((None, topic.id)))


@conversation("6+")
def an_unknown_id(talk: Talk) -> None:
    talk.ask(delete_ids((None, UNKNOWN_ID)), E.UNKNOWN_TOPIC_ID)


@conversation("6+")
def an_id_named_twice_is_refused_and_the_topic_stays(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(delete_ids((None, topic.id), (None, topic.id)), E.INVALID_REQUEST)
    still_there(talk, topic.name)


@conversation("6+")
def a_topic_named_and_identified_is_refused_and_stays(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(delete_ids((topic.name, topic.id)), E.INVALID_REQUEST)
    talk.ask(delete_ids((topic.name, ZERO_UUID), (None, topic.id)), E.INVALID_REQUEST)
    still_there(talk, topic.name)


@conversation("6+")
def neither_name_nor_id(talk: Talk) -> None:
    talk.ask(delete_ids((None, ZERO_UUID)), E.INVALID_REQUEST)


@conversation("6+")
def everything_that_is_wrong_at_once(talk: Talk) -> None:
    topic, other = talk.topic("a"), talk.topic("b")
    asked = delete_ids(
        (None, ZERO_UUID),
        (topic.name, topic.id),
        (talk.name("missing"), ZERO_UUID),
        (None, UNKNOWN_ID),
        (None, other.id),
    )
    talk.ask(
        asked,
        E.INVALID_REQUEST,
        E.INVALID_REQUEST,
        E.UNKNOWN_TOPIC_ID,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )


@conversation
def topics_are_deleted_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(delete(talk.topic().name))
    controllers.ask(delete(talk.name("missing")), E.UNKNOWN_TOPIC_OR_PARTITION)
