"""EndTxn: a transaction becomes visible, or never was."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import ANY, E, Talk, Topic
from interop.conformance.transactions import Producer, near_its_last_epoch, with_coordinator
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


def committed(talk: Talk, topic: Topic) -> None:
    """Compare what a reader of committed records sees."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[asked])]
    talk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1_000_000, topics=topics, isolation_level=1))


def described(talk: Talk, producer: Producer) -> None:
    talk.ask(DescribeTransactionsRequest(transactional_ids=[producer.id]))


@conversation
def what_is_committed_is_seen(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one", b"two")
    committed(talk, topic)
    talk.ask(producer.ending())
    producer.settles()
    committed(talk, topic)


@conversation
def what_is_aborted_is_told_apart(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one", b"two")
    talk.ask(producer.ending(commit=False))
    producer.settles()
    talk.produce(topic, b"plain")
    committed(talk, topic)


@conversation
def the_same_end_again_is_no_error_the_other_end_is(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    talk.ask(producer.ending())
    producer.settles()
    talk.ask(producer.ending())
    talk.ask(producer.ending(commit=False), E.INVALID_TXN_STATE)
    described(talk, producer)


@conversation
def an_abort_again(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    talk.ask(producer.ending(commit=False))
    producer.settles()
    talk.ask(producer.ending(commit=False))
    described(talk, producer)


@conversation(LATEST)
def a_commit_after_an_abort(talk: Talk) -> None:
    """As of a producer whose transaction has timed out meanwhile."""
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    talk.ask(producer.ending(commit=False))
    producer.settles()
    talk.ask(producer.ending(), ANY)
    described(talk, producer)


@conversation
def a_commit_of_what_never_began(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(producer.ending(), E.INVALID_TXN_STATE)
    described(talk, producer)


@conversation
def an_abort_of_what_never_began(talk: Talk) -> None:
    producer = Producer(talk)
    expected = [] if talk.version >= 5 else [E.INVALID_TXN_STATE]
    talk.ask(producer.ending(commit=False), *expected)
    producer.settles()


@conversation
def a_transaction_without_records(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    talk.ask(producer.ending())
    producer.settles()
    committed(talk, topic)


@conversation
def a_transaction_of_several_partitions(talk: Talk) -> None:
    a, b, producer = talk.topic("a", partitions=2), talk.topic("b"), Producer(talk)
    producer.adds(a, 0, 1)
    producer.adds(b)
    producer.writes(a, b"1")
    producer.writes(b, b"2")
    talk.ask(producer.ending())
    producer.settles()
    committed(talk, a)
    committed(talk, b)


@conversation
def an_unknown_transactional_id(talk: Talk) -> None:
    with_coordinator(talk, talk.name("unknown"))
    for name, error in ((talk.name("unknown"), E.INVALID_PRODUCER_ID_MAPPING), ("", E.INVALID_REQUEST)):
        request = EndTxnRequest(transactional_id=name, producer_id=5, producer_epoch=0, committed=True)
        talk.ask(request, error)


@conversation
def another_producer_id_or_epoch(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    fenced = E.PRODUCER_FENCED if talk.version >= 2 else E.INVALID_PRODUCER_EPOCH
    talk.ask(producer.ending(producer_epoch=producer.epoch + 1), fenced)
    talk.ask(producer.ending(producer_epoch=-1), fenced)
    talk.ask(producer.ending(producer_id=producer.producer_id + 1000), E.INVALID_PRODUCER_ID_MAPPING)
    described(talk, producer)


@conversation
def several_transactions_one_after_the_other(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    for number in range(3):
        producer.adds(topic)
        producer.writes(topic, b"%d" % number)
        answer = talk.ask(producer.ending(commit=number != 1))
        producer.settles()
        if talk.version >= 5:
            producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
            producer.sequence.clear()
    committed(talk, topic)


@conversation(LATEST)
def transactions_with_the_last_epochs(talk: Talk) -> None:
    """Each end raises the epoch, until there is none left: then it gives out another producer id."""
    topic, producer = talk.topic(), near_its_last_epoch(talk, left=3)
    for number in range(6):
        producer.writes(topic, b"%d" % number)
        request = producer.ending(commit=number % 2 == 0)
        answer = talk.ask(request)
        producer.settles()
        talk.ask(request, ANY)  # the answer was lost
        old = producer.producer_id, producer.epoch
        producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
        producer.sequence.clear()
        if answer.producer_id != old[0]:
            last = old
    committed(talk, topic)
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic.name, partition_indexes=[0])]))
    producer.producer_id, producer.epoch = last
    talk.ask(producer.producing(topic, producer.batch(topic, b"late")), ANY)
    talk.ask(producer.ending(), ANY)
    described(talk, producer)
