"""InitProducerId: an identity for a producer that wants its batches written once."""

from __future__ import annotations

from typing import Any

from interop.conformance.batches import batch
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import ANY, E, Talk, Topic
from interop.conformance.transactions import LAST_EPOCH, Producer, near_its_last_epoch, with_coordinator
from interop.conformance.versions import latest_version
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def asking(
    transactional_id: str | None = None, timeout_ms: int = 60_000, **more: Any
) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **more)


@conversation
def every_producer_gets_an_id_of_its_own(talk: Talk) -> None:
    talk.ask(asking())
    talk.ask(asking())
    talk.another().ask(asking())


@conversation
def the_timeout_does_not_matter_without_transactions(talk: Talk) -> None:
    for timeout_ms in (0, -1, 2**31 - 1, -(2**31)):
        talk.ask(asking(timeout_ms=timeout_ms))


@conversation("3+")
def an_id_without_an_epoch_is_invalid(talk: Talk) -> None:
    talk.ask(asking(producer_id=5, producer_epoch=-1), E.INVALID_REQUEST)
    talk.ask(asking(producer_id=-1, producer_epoch=0), E.INVALID_REQUEST)
    talk.ask(asking(producer_id=-1, producer_epoch=-2), E.INVALID_REQUEST)


@conversation("3+")
def a_producer_that_has_an_id_gets_another(talk: Talk) -> None:
    mine = talk.ask(asking())
    talk.ask(asking(producer_id=mine.producer_id, producer_epoch=mine.producer_epoch))
    talk.ask(asking(producer_id=2**50, producer_epoch=7))
    talk.ask(asking(producer_id=-5, producer_epoch=-5))


@conversation
def what_was_given_out_can_be_used(talk: Talk) -> None:
    mine = talk.ask(asking())
    topic: Topic = talk.topic()
    data = batch(b"x", producer_id=mine.producer_id, producer_epoch=mine.producer_epoch, base_sequence=0)
    partitions = [PartitionProduceData(index=0, records=data)]
    topics = [TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=partitions)]
    talk.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics))
    talk.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics))


@conversation
def an_empty_transactional_id_is_invalid(talk: Talk) -> None:
    talk.ask(asking(""), E.INVALID_REQUEST)


# ---- with a transactional id ----


@conversation
def a_transactional_id_keeps_its_producer_and_gets_a_new_epoch(talk: Talk) -> None:
    with_coordinator(talk, talk.name("t"))
    for _ in range(3):
        talk.ask(asking(talk.name("t")))


@conversation
def two_transactional_ids_are_two_producers(talk: Talk) -> None:
    with_coordinator(talk, talk.name("t"))
    talk.ask(asking(talk.name("one")))
    talk.ask(asking(talk.name("other")))


@conversation
def timeouts_that_cannot_be(talk: Talk) -> None:
    with_coordinator(talk, talk.name("t"))
    for timeout_ms in (0, -1, 900_001, 2**31 - 1):
        talk.ask(asking(talk.name("t"), timeout_ms), E.INVALID_TRANSACTION_TIMEOUT)
    talk.ask(asking(talk.name("t"), 900_000))
    talk.ask(asking(talk.name("t"), 1))


@conversation
def an_open_transaction_is_aborted_first(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    talk.ask(asking(producer.id), E.CONCURRENT_TRANSACTIONS)
    producer.settles()
    talk.ask(asking(producer.id), until=lambda answer: answer.error_code == E.NONE)


@conversation("3+")
def a_producer_may_say_who_it_is(talk: Talk) -> None:
    producer = Producer(talk)
    for _ in range(2):
        answer = talk.ask(
            asking(producer.id, producer_id=producer.producer_id, producer_epoch=producer.epoch)
        )
    talk.ask(asking(producer.id, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch))


@conversation("3+")
def an_older_epoch_is_fenced(talk: Talk) -> None:
    older, producer = Producer(talk), Producer(talk)
    fenced = E.PRODUCER_FENCED if talk.version >= 4 else E.INVALID_PRODUCER_EPOCH
    Producer(talk)
    request = asking(older.id, producer_id=older.producer_id, producer_epoch=older.epoch)
    talk.ask(request, fenced)
    request = asking(older.id, producer_id=older.producer_id, producer_epoch=producer.epoch + 9)
    talk.ask(request, fenced)


@conversation("3+")
def another_producer_id_is_fenced(talk: Talk) -> None:
    producer = Producer(talk)
    fenced = E.PRODUCER_FENCED if talk.version >= 4 else E.INVALID_PRODUCER_EPOCH
    request = asking(producer.id, producer_id=producer.producer_id + 1000, producer_epoch=0)
    talk.ask(request, fenced)


@conversation("3+")
def a_producer_id_with_a_new_transactional_id(talk: Talk) -> None:
    with_coordinator(talk, talk.name("t"))
    talk.ask(asking(talk.name("t"), producer_id=2**50, producer_epoch=3))


@conversation("3+")
def half_a_producer_with_a_transactional_id(talk: Talk) -> None:
    with_coordinator(talk, talk.name("t"))
    talk.ask(asking(talk.name("t"), producer_id=5, producer_epoch=-1), E.INVALID_REQUEST)
    talk.ask(asking(talk.name("t"), 0, producer_id=-1, producer_epoch=5), E.INVALID_REQUEST)


@conversation
def after_a_transaction_the_epoch_goes_on(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    for commit in (True, False):
        producer.adds(topic)
        producer.ends(commit)
    talk.ask(asking(producer.id))


# ---- the last epochs ----


def what_is_left_of(talk: Talk, topic: Topic, old: Producer) -> None:
    """Compare what a producer id that is used up may still do."""
    again = asking(old.id, producer_id=old.producer_id, producer_epoch=old.epoch)
    talk.ask(again, ANY, version=latest_version(api_key_of(again)))
    talk.ask(old.producing(topic, old.batch(topic, b"late")), ANY)
    talk.ask(old.ending(), ANY)
    talk.ask(DescribeTransactionsRequest(transactional_ids=[old.id]))
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic.name, partition_indexes=[0])]))


@conversation(LATEST)
def initialised_again_with_the_last_epochs(talk: Talk) -> None:
    topic, producer = talk.topic(), near_its_last_epoch(talk, left=3)
    for _ in range(5):
        answer = talk.ask(asking(producer.id))
        if answer.producer_id == producer.producer_id:
            producer.epoch = answer.producer_epoch
    what_is_left_of(talk, topic, producer)


@conversation(LATEST)
def a_producer_asks_for_the_next_of_its_last_epochs(talk: Talk) -> None:
    topic, producer = talk.topic(), near_its_last_epoch(talk, left=3)
    for _ in range(6):
        mine = asking(producer.id, producer_id=producer.producer_id, producer_epoch=producer.epoch)
        answer = talk.ask(mine)
        if answer.producer_epoch != LAST_EPOCH:
            talk.ask(mine)  # the answer was lost
        old = replace_identity(producer, answer)
        if answer.producer_id != old[0]:
            break
    producer.writes(topic, b"of the new id")
    producer.ends()
    producer.producer_id, producer.epoch = old
    what_is_left_of(talk, topic, producer)


@conversation(LATEST)
def the_answer_with_the_last_epoch_is_lost(talk: Talk) -> None:
    producer = near_its_last_epoch(talk, left=1)
    mine = asking(producer.id, producer_id=producer.producer_id, producer_epoch=producer.epoch)
    talk.do(mine)
    talk.ask(mine, E.UNKNOWN_SERVER_ERROR)


def replace_identity(producer: Producer, answer: Any) -> tuple[int, int]:
    """Take over what an answer gives out; what the producer was before."""
    old = producer.producer_id, producer.epoch
    producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
    return old


@conversation(LATEST)
def an_open_transaction_of_the_last_epoch(talk: Talk) -> None:
    for left in (1, 0):
        topic, producer = talk.topic(f"topic-{left}"), near_its_last_epoch(talk, f"id-{left}", left=left)
        producer.writes(topic, b"never committed")
        talk.ask(asking(producer.id), ANY)
        producer.settles()
        talk.ask(asking(producer.id), ANY)
        what_is_left_of(talk, topic, producer)


@conversation(LATEST)
def a_batch_of_the_highest_epoch(talk: Talk) -> None:
    topic, mine = talk.topic(), talk.do(asking())
    for epoch in (2**15 - 1, 2**15 - 2):
        data = batch(b"x", producer_id=mine.producer_id, producer_epoch=epoch, base_sequence=0)
        partitions = [PartitionProduceData(index=0, records=data)]
        topics = [TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=partitions)]
        talk.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics), ANY)
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic.name, partition_indexes=[0])]))
