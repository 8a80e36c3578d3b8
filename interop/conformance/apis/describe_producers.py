"""DescribeProducers: who writes to a partition, as its leader remembers."""

from __future__ import annotations

from interop.conformance.batches import batch
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk, Topic
from interop.conformance.transactions import Producer
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest


def asking(*topics: TopicRequest) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=list(topics))


def of(topic: Topic | str, *partitions: int) -> TopicRequest:
    name = topic if isinstance(topic, str) else topic.name
    return TopicRequest(name=name, partition_indexes=list(partitions))


def new_producer(talk: Talk) -> int:
    answer = talk.do(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
    producer_id: int = answer.producer_id
    return producer_id


def write(talk: Talk, topic: Topic, producer_id: int, sequence: int, epoch: int = 0, count: int = 1) -> None:
    values = [b"%d" % index for index in range(count)]
    data = batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    talk.append(topic, data)


@conversation
def a_partition_without_producers(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(of(topic, 0)))
    talk.produce(topic, b"of nobody")
    talk.ask(asking(of(topic, 0)))


@conversation
def a_producer_with_its_last_sequence(talk: Talk) -> None:
    topic, producer_id = talk.topic(), new_producer(talk)
    write(talk, topic, producer_id, 0, count=3)
    talk.ask(asking(of(topic, 0)))
    write(talk, topic, producer_id, 3)
    talk.ask(asking(of(topic, 0)))


@conversation
def several_producers(talk: Talk) -> None:
    topic = talk.topic()
    for sequence in (0, 5, 9):
        write(talk, topic, new_producer(talk), sequence)
    talk.ask(asking(of(topic, 0)))


@conversation
def a_producer_of_a_new_epoch(talk: Talk) -> None:
    topic, producer_id = talk.topic(), new_producer(talk)
    write(talk, topic, producer_id, 0)
    write(talk, topic, producer_id, 0, epoch=4)
    talk.ask(asking(of(topic, 0)))


@conversation
def a_producer_whose_sequence_began_again(talk: Talk) -> None:
    topic, producer_id = talk.topic(), new_producer(talk)
    write(talk, topic, producer_id, 2**31 - 2, count=4)
    talk.ask(asking(of(topic, 0)))


@conversation
def a_producer_whose_records_were_deleted(talk: Talk) -> None:
    topic, producer_id = talk.topic(), new_producer(talk)
    write(talk, topic, producer_id, 0)
    asked = DeleteRecordsPartition(partition_index=0, offset=1)
    topics = [DeleteRecordsTopic(name=topic.name, partitions=[asked])]
    talk.do(DeleteRecordsRequest(topics=topics, timeout_ms=10_000))
    talk.ask(asking(of(topic, 0)))


@conversation
def several_partitions_of_several_topics(talk: Talk) -> None:
    a, b = talk.topic("a", partitions=2), talk.topic("b")
    write(talk, b, new_producer(talk), 0)
    talk.ask(asking(of(b, 0), of(a, 1, 0)))


@conversation
def unknown_topics_and_partitions(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(of(talk.name("missing"), 0, 1), of(topic, 3, 0, -1)), *[E.UNKNOWN_TOPIC_OR_PARTITION] * 4)


@conversation
def names_that_no_topic_can_have(talk: Talk) -> None:
    for name in ("", ".", "..", "not valid!", "n" * 250):
        talk.ask(asking(of(name, 0, 1)), E.INVALID_TOPIC_EXCEPTION, E.INVALID_TOPIC_EXCEPTION)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    talk.ask(asking())
    talk.ask(asking(of(talk.topic())))
    talk.ask(asking(of(talk.name("missing"))))


@conversation
def a_partition_named_twice_is_answered_twice(talk: Talk) -> None:
    topic = talk.topic()
    write(talk, topic, new_producer(talk), 0)
    talk.ask(asking(of(topic, 0, 0), of(topic, 0)))


@conversation
def a_producer_in_a_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.produce(topic, b"before")
    producer.adds(topic)
    producer.writes(topic, b"one", b"two")
    talk.ask(asking(of(topic, 0)))
    producer.ends()
    talk.ask(asking(of(topic, 0)))
    producer.adds(topic)
    producer.writes(topic, b"three")
    producer.ends(commit=False)
    talk.ask(asking(of(topic, 0)))
