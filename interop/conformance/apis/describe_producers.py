"""DescribeProducers: who writes to a partition, as its leader remembers."""

from __future__ import annotations

import time
from typing import Any

from interop.conformance.batches import batch
from interop.conformance.conversation import conversation
from interop.conformance.talk import ANY, E, Talk, Topic
from interop.conformance.topics import without_start
from interop.conformance.transactions import (
    EXPIRING,
    LAST_END_VERSION_OF_OLD_CLIENTS,
    LAST_PRODUCE_VERSION_OF_OLD_CLIENTS,
    Producer,
)
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


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


def producing(topic: Topic, data: bytes) -> ProduceRequest:
    partitions = [PartitionProduceData(index=0, records=data)]
    topics = [TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=partitions)]
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)


@conversation
def a_partition_without_producers(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(of(topic, 0)))
    talk.produce(topic, b"without a producer id")
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
    without_start(talk, topic, 1)
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


# ---- expiry ----


def now_ms() -> int:
    return int(time.time() * 1000)


def are_left(talk: Talk, topic: Topic, number: int) -> None:
    """Wait until the partition remembers so many producers, who are compared."""
    talk.ask(
        asking(of(topic, 0)),
        until=lambda answer: len(answer.topics[0].partitions[0].active_producers) == number,
    )


@conversation(settings=EXPIRING)
def a_producer_that_writes_no_more_is_forgotten(talk: Talk) -> None:
    topic, producer_id = talk.topic(), new_producer(talk)

    def data(sequence: int, count: int) -> bytes:
        identity: dict[str, Any] = {
            "producer_id": producer_id,
            "producer_epoch": 0,
            "base_sequence": sequence,
        }
        return batch(*[b"x"] * count, timestamp_ms=now_ms(), step_ms=0, **identity)

    first = data(0, 2)
    for _ in range(2):
        talk.ask(producing(topic, first))  # the second time as a duplicate
    are_left(talk, topic, 1)
    are_left(talk, topic, 0)
    first = data(0, 2)
    for each in (first, first, data(7, 1)):
        talk.ask(producing(topic, each), ANY)  # as of a new producer
    are_left(talk, topic, 1)
    are_left(talk, topic, 0)
    talk.ask(producing(topic, data(7, 1)))  # in the middle of its sequence
    are_left(talk, topic, 1)


@conversation(settings=EXPIRING)
def a_producer_of_old_records_writes_twice_within_the_time(talk: Talk) -> None:
    topic, producer_id = talk.topic(), new_producer(talk)
    old = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    talk.append(topic, old)
    time.sleep(0.6)  # of 1.5 s, in which the broker looks several times
    talk.ask(producing(topic, old))
    are_left(talk, topic, 0)


@conversation(settings=EXPIRING)
def a_producer_with_an_open_transaction_is_not_forgotten(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.writes(topic, b"open")
    idempotent = batch(
        b"x", timestamp_ms=now_ms(), producer_id=new_producer(talk), producer_epoch=0, base_sequence=0
    )
    talk.append(topic, idempotent)
    are_left(talk, topic, 2)
    are_left(talk, topic, 1)
    producer.writes(topic, b"still")
    producer.ends()
    are_left(talk, topic, 1)
    are_left(talk, topic, 0)


@conversation(settings=EXPIRING)
def a_transaction_goes_on_where_its_producer_was_forgotten(talk: Talk) -> None:
    """Between two transactions, of an old client, whose sequence goes on."""
    topic, producer = talk.topic(), Producer(talk)
    for sequence in (0, 5):
        producer.adds(topic)
        data = producer.batch(topic, b"x", base_sequence=sequence)
        talk.ask(producer.producing(topic, data), ANY, version=LAST_PRODUCE_VERSION_OF_OLD_CLIENTS)
        talk.ask(producer.ending(), ANY, version=LAST_END_VERSION_OF_OLD_CLIENTS)
        producer.settles()
        are_left(talk, topic, 1)
        are_left(talk, topic, 0)
