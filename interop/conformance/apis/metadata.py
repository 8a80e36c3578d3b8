"""Metadata: which brokers exist and who leads which partition."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

#: The id of no topic.
UNKNOWN_ID = bytes.fromhex("0123456789abcdef0123456789abcdef")
INVALID_NAMES = ("", ".", "..", "two words", "x" * 250)


def asking(*names: str | None, create: bool = False, **more: bool) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **more)


def asking_ids(*ids: bytes, name: str | None = None) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name, topic_id=topic_id) for topic_id in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def named(answer: Any) -> list[str]:
    return [topic.name for topic in answer.topics]


def delete(talk: Talk, topic: Topic) -> None:
    topics = [DeleteTopicState(name=topic.name, topic_id=ZERO_UUID)]
    talk.do(DeleteTopicsRequest(topics=topics, timeout_ms=10_000))


@conversation
def a_topic_is_described_with_its_partitions(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    talk.ask(asking(topic.name))


@conversation
def topics_are_described_in_the_order_of_the_request(talk: Talk) -> None:
    topics = [talk.topic(label) for label in ("b", "a", "c")]
    talk.ask(asking(*(topic.name for topic in topics)))


@conversation
def a_topic_named_twice_is_described_once(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(topic.name, topic.name))


@conversation("4+")
def an_unknown_topic_is_named_with_an_error_beside_the_known_ones(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(topic.name, talk.name("missing"), topic.name), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation("4+")
def known_topics_come_before_unknown_ones(talk: Talk) -> None:
    names = (talk.name("missing"), talk.topic("a").name, "two words", talk.topic("b").name)
    talk.ask(asking(*names), E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION)


@conversation("4+")
def a_topic_is_not_created_if_the_client_does_not_want_it(talk: Talk) -> None:
    talk.ask(asking(talk.name()), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(asking(talk.name()), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_cannot_be_a_name_is_refused(talk: Talk) -> None:
    for name in INVALID_NAMES:
        talk.ask(asking(name), E.INVALID_TOPIC_EXCEPTION)


@conversation
def what_cannot_be_a_name_is_not_created(talk: Talk) -> None:
    for name in INVALID_NAMES:
        talk.ask(asking(name, create=True), E.INVALID_TOPIC_EXCEPTION)


@conversation("1+")
def an_empty_list_means_no_topics(talk: Talk) -> None:
    talk.topic()
    talk.ask(asking())


@conversation("1+", alone=True)
def no_list_means_all_topics(talk: Talk) -> None:
    names = {talk.topic("a").name, talk.topic("b", partitions=2).name}
    talk.ask(
        MetadataRequest(topics=None, allow_auto_topic_creation=True),
        until=lambda answer: {name for name in named(answer) if not name.startswith("__")} == names,
        in_any_order={"topics": "name"},
    )


@conversation("0", alone=True)
def version_0_has_no_null_so_an_empty_list_means_all(talk: Talk) -> None:
    names = {talk.topic("a").name, talk.topic("b").name}
    talk.ask(
        asking(),
        until=lambda answer: {name for name in named(answer) if not name.startswith("__")} == names,
        in_any_order={"topics": "name"},
    )


@conversation
def naming_an_unknown_topic_creates_it(talk: Talk) -> None:
    talk.ask(asking(talk.name(), create=True), until=lambda answer: bool(answer.topics[0].partitions))
    talk.created.append(talk.name())


@conversation(LATEST)
def the_first_request_that_names_an_unknown_topic(talk: Talk) -> None:
    talk.ask(asking(talk.name(), create=True), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.created.append(talk.name())


@conversation
def a_topic_that_differs_in_a_dot_alone_is_not_created(talk: Talk) -> None:
    talk.topic(name=talk.name("a.b"))
    talk.ask(asking(talk.name("a_b"), create=True), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(asking(talk.name("a_b"), create=True), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def more_partitions_are_seen(talk: Talk) -> None:
    topic = talk.topic()
    more = [CreatePartitionsTopic(name=topic.name, count=3, assignments=None)]
    talk.do(CreatePartitionsRequest(topics=more, timeout_ms=10_000, validate_only=False))
    talk.is_led(topic.name, 3)
    talk.ask(asking(topic.name))


@conversation("4+")
def a_deleted_topic_is_unknown(talk: Talk) -> None:
    topic = talk.topic()
    delete(talk, topic)
    talk.ask(
        asking(topic.name),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        until=lambda answer: not answer.topics[0].partitions,
    )


@conversation
def a_just_deleted_topic_is_unknown_before_it_is_created_again(talk: Talk) -> None:
    topic = talk.topic()
    delete(talk, topic)
    talk.ask(
        asking(topic.name, create=True),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        until=lambda answer: not answer.topics[0].partitions,
    )
    talk.ask(asking(topic.name, create=True), until=lambda answer: bool(answer.topics[0].partitions))


@conversation("10+")
def a_topic_that_was_created_again_has_another_id(talk: Talk) -> None:
    delete(talk, talk.topic())
    topic = talk.topic()
    talk.ask(asking(topic.name), until=lambda answer: answer.topics[0].topic_id == topic.id)


@conversation("12+")
def topics_are_found_by_id(talk: Talk) -> None:
    topic, other = talk.topic("a", partitions=2), talk.topic("b")
    talk.ask(asking_ids(other.id, topic.id))


@conversation("12+")
def an_unknown_id_is_answered_beside_the_known_ones(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking_ids(topic.id, UNKNOWN_ID, UNKNOWN_ID), E.UNKNOWN_TOPIC_ID)


@conversation("12+")
def an_id_named_twice_is_described_once(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking_ids(topic.id, topic.id))


@conversation("12+")
def the_id_of_a_deleted_topic_is_unknown(talk: Talk) -> None:
    topic = talk.topic()
    delete(talk, topic)
    talk.ask(
        asking_ids(topic.id),
        E.UNKNOWN_TOPIC_ID,
        # Apache may find the name of the id in one picture of the cluster, and no such name in the next.
        until=lambda answer: answer.topics[0].error_code == E.UNKNOWN_TOPIC_ID,
    )


@conversation("12+")
def a_name_beside_an_id_is_not_looked_at(talk: Talk) -> None:
    topic, other = talk.topic("a"), talk.topic("b")
    talk.ask(asking_ids(topic.id, name=topic.name))
    talk.ask(asking_ids(topic.id, name=other.name))


@conversation("12+")
def one_id_makes_it_a_look_up_by_id(talk: Talk) -> None:
    topic, other = talk.topic("a"), talk.topic("b")
    topics = [
        MetadataRequestTopic(name=other.name),
        MetadataRequestTopic(name=None, topic_id=topic.id),
    ]
    talk.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=True))


@conversation("10-11")
def versions_that_carry_ids_without_using_them_refuse_them(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking_ids(topic.id), E.INVALID_REQUEST)
    talk.ask(asking_ids(topic.id, name=topic.name), E.INVALID_REQUEST)


@conversation("10-11")
def versions_that_carry_ids_without_using_them_refuse_a_missing_name(talk: Talk) -> None:
    talk.ask(asking(None), E.INVALID_REQUEST)


@conversation(LATEST)
def a_topic_without_name_and_id_is_refused(talk: Talk) -> None:
    talk.ask(asking(None), E.UNKNOWN_SERVER_ERROR, E.UNKNOWN_SERVER_ERROR)


@conversation("8+")
def what_may_be_done_with_a_topic_is_told_to_those_who_ask(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(
        asking(topic.name, talk.name("missing"), "two words", include_topic_authorized_operations=True),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.INVALID_TOPIC_EXCEPTION,
    )


@conversation("8-10")
def what_may_be_done_with_the_cluster_is_told_to_those_who_ask(talk: Talk) -> None:
    talk.ask(asking(include_cluster_authorized_operations=True))


@conversation
def the_offsets_topic_is_internal(talk: Talk) -> None:
    talk.do(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), version=4)
    talk.ask(asking("__consumer_offsets"), until=lambda answer: bool(answer.topics[0].partitions))


@conversation("4+")
def the_metadata_log_is_no_topic(talk: Talk) -> None:
    talk.ask(asking("__cluster_metadata"), E.UNKNOWN_TOPIC_OR_PARTITION)
