"""AddPartitionsToTxn: which partitions a transaction writes to; up to v3 from clients, then brokers."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from interop.conformance.transactions import Producer, adding, with_coordinator
from pykafka_broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest


def described(talk: Talk, producer: Producer) -> None:
    talk.ask(DescribeTransactionsRequest(transactional_ids=[producer.id]))


def of(producer: Producer, *topics: tuple[str, list[int]], **more: bool) -> AddPartitionsToTxnRequest:
    return adding(producer.id, producer.producer_id, producer.epoch, *topics, **more)


@conversation
def partitions_begin_a_transaction_and_join_it(talk: Talk) -> None:
    a, b, producer = talk.topic("a"), talk.topic("b"), Producer(talk)
    talk.ask(of(producer, (a.name, [0])))
    described(talk, producer)
    talk.ask(of(producer, (b.name, [0])))
    talk.ask(of(producer, (a.name, [0])))
    described(talk, producer)


@conversation
def several_topics_and_partitions(talk: Talk) -> None:
    a, b, producer = talk.topic("a", partitions=3), talk.topic("b"), Producer(talk)
    talk.ask(of(producer, (a.name, [2, 0]), (b.name, [0])))


@conversation
def one_unknown_partition_and_none_is_added(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.ask(
        of(producer, (topic.name, [0, 7]), (talk.name("missing"), [0])),
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )
    described(talk, producer)


@conversation
def nothing_to_add(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(of(producer))
    talk.ask(of(producer, (talk.topic().name, [])))
    described(talk, producer)


@conversation
def an_unknown_transactional_id(talk: Talk) -> None:
    topic = talk.topic()
    with_coordinator(talk, talk.name("unknown"))
    talk.ask(adding(talk.name("unknown"), 5, 0, (topic.name, [0])), E.INVALID_PRODUCER_ID_MAPPING)


@conversation
def another_producer_id_than_the_transactional_ids(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    request = adding(producer.id, producer.producer_id + 1000, producer.epoch, (topic.name, [0]))
    talk.ask(request, E.INVALID_PRODUCER_ID_MAPPING)


@conversation
def an_epoch_that_is_not_the_present_one_is_fenced(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    fenced = E.PRODUCER_FENCED if talk.version >= 2 else E.INVALID_PRODUCER_EPOCH
    for epoch in (producer.epoch + 1, producer.epoch - 1):
        talk.ask(adding(producer.id, producer.producer_id, epoch, (topic.name, [0])), fenced)


@conversation
def an_empty_transactional_id(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.ask(adding("", producer.producer_id, 0, (topic.name, [0])), E.INVALID_REQUEST)


@conversation
def the_unknown_partition_is_noticed_before_the_epoch(talk: Talk) -> None:
    producer = Producer(talk)
    request = adding(producer.id, producer.producer_id, 7, (talk.name("missing"), [0]))
    talk.ask(request, E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_partition_named_twice(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.ask(of(producer, (topic.name, [0, 0])))
    described(talk, producer)


@conversation
def the_next_transaction_begins_after_the_end_of_the_last(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.ask(of(producer, (topic.name, [0])))
    producer.ends()
    talk.ask(of(producer, (topic.name, [0])))
    described(talk, producer)


@conversation("4+")
def verifying_adds_nothing(talk: Talk) -> None:
    topic, producer = talk.topic(partitions=2), Producer(talk)
    talk.ask(
        of(producer, (topic.name, [0]), verify_only=True),
        E.TRANSACTION_ABORTABLE,
    )
    producer.adds(topic, 0)
    talk.ask(of(producer, (topic.name, [0]), verify_only=True))
    talk.ask(
        of(producer, (topic.name, [0, 1]), verify_only=True),
        E.TRANSACTION_ABORTABLE,
    )
    described(talk, producer)


@conversation("4+")
def several_transactions_in_one_request(talk: Talk) -> None:
    topic = talk.topic()
    one, other = Producer(talk, "one"), Producer(talk, "other")
    request = of(one, (topic.name, [0]))
    request.transactions += of(other, (topic.name, [0])).transactions
    request.transactions += adding(talk.name("unknown"), 5, 0, (topic.name, [0])).transactions
    talk.ask(request, E.INVALID_PRODUCER_ID_MAPPING)
    described(talk, one)
    described(talk, other)


@conversation(LATEST)
def no_transactions_in_a_request(talk: Talk) -> None:
    talk.send(AddPartitionsToTxnRequest(transactions=[])).is_waiting()
