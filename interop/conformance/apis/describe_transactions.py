"""DescribeTransactions: what a coordinator knows of transactional ids."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from interop.conformance.transactions import Producer, with_coordinator
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest


def of(*names: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=list(names))


@conversation
def a_producer_without_a_transaction(talk: Talk) -> None:
    talk.ask(of(Producer(talk).id))


@conversation
def an_ongoing_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(partitions=2), Producer(talk, timeout_ms=12_345)
    producer.adds(topic, 1)
    talk.ask(of(producer.id))
    producer.writes(topic, b"x", partition=0)
    talk.ask(of(producer.id))


@conversation
def a_committed_and_an_aborted_one(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.ends(commit=True)
    talk.ask(of(producer.id))
    producer.adds(topic)
    producer.ends(commit=False)
    talk.ask(of(producer.id))


@conversation
def the_transaction_of_an_older_client(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.ends(version=4)
    talk.ask(of(producer.id))
    producer.adds(topic)
    talk.ask(of(producer.id))


@conversation
def offsets_are_part_of_a_transaction(talk: Talk) -> None:
    producer = Producer(talk)
    producer.adds_offsets(talk.name("group"))
    talk.ask(of(producer.id))


@conversation
def ids_nobody_knows(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(of(talk.name("nobody"), producer.id, ""), E.TRANSACTIONAL_ID_NOT_FOUND, E.INVALID_REQUEST)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    with_coordinator(talk, talk.name("nobody"))
    talk.ask(of())


@conversation
def an_id_named_twice(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(of(producer.id, producer.id))
