"""DescribeTransactions: what a coordinator knows of transactional ids."""

from __future__ import annotations

import time

from interop.conformance.conversation import conversation
from interop.conformance.talk import ANY, PAUSE_S, E, Talk
from interop.conformance.transactions import (
    EXPIRING,
    LAST_END_VERSION_OF_OLD_CLIENTS,
    Producer,
    adding,
    init,
    with_coordinator,
)
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest


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
def unknown_ids(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(of(talk.name("unknown"), producer.id, ""), E.TRANSACTIONAL_ID_NOT_FOUND, E.INVALID_REQUEST)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    with_coordinator(talk, talk.name("unknown"))
    talk.ask(of())


@conversation
def an_id_named_twice(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(of(producer.id, producer.id))


# ---- expiry ----


def is_forgotten(talk: Talk, *ids: str) -> None:
    """Wait until the coordinator has forgotten all of these, which is compared."""
    talk.ask(
        of(*ids),
        *[E.TRANSACTIONAL_ID_NOT_FOUND] * len(ids),
        until=lambda answer: all(each.error_code != E.NONE for each in answer.transaction_states),
    )


@conversation(settings=EXPIRING)
def a_transactional_id_that_is_not_used_is_forgotten(talk: Talk) -> None:
    topic, never, committed, aborted = talk.topic(), *(Producer(talk, label) for label in ("a", "b", "c"))
    for producer, commit in ((committed, True), (aborted, False)):
        producer.writes(topic, b"x")
        producer.ends(commit)
    talk.ask(of(never.id, committed.id, aborted.id))
    is_forgotten(talk, never.id, committed.id, aborted.id)
    talk.ask(
        ListTransactionsRequest(state_filters=["CompleteCommit"], producer_id_filters=[committed.producer_id])
    )
    for producer in (never, committed):
        talk.ask(adding(producer.id, producer.producer_id, producer.epoch, (topic.name, [0])), ANY, version=3)
        talk.ask(producer.producing(topic, producer.batch(topic, b"late")), ANY)
        talk.ask(producer.ending(), ANY)
        mine = init(producer.id, producer_id=producer.producer_id, producer_epoch=producer.epoch)
        talk.ask(mine, ANY)
        talk.ask(init(producer.id))
        talk.ask(of(producer.id))


@conversation(settings=EXPIRING)
def an_open_transaction_outlives_the_time_after_which_ids_are_forgotten(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk, "open")
    producer.writes(topic, b"x")
    is_forgotten(talk, Producer(talk, "idle").id)  # which is younger
    talk.ask(of(producer.id))
    producer.ends()
    talk.ask(of(producer.id))
    is_forgotten(talk, producer.id)


@conversation(settings=EXPIRING)
def an_id_that_is_used_is_not_forgotten(talk: Talk) -> None:
    """As an old client uses it, whose epoch stays, however often."""
    topic, producer = talk.topic(), Producer(talk, "used")
    for number in range(2):
        idle = of(Producer(talk, f"idle-{number}").id)
        while talk.send(idle).receive().transaction_states[0].error_code == E.NONE:
            producer.adds(topic)
            talk.do(producer.ending(), version=LAST_END_VERSION_OF_OLD_CLIENTS)
            time.sleep(PAUSE_S)
    producer.settles()
    talk.ask(of(producer.id))
