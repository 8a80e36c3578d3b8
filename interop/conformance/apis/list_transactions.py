"""ListTransactions: the transactional ids of a coordinator, by their state and age."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from interop.conformance.transactions import Producer
from pykafka_broker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)


def listing(*states: str, ids: tuple[int, ...] = (), **more: Any) -> ListTransactionsRequest:
    return ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(ids), **more)


@conversation
def transactions_of_these_producers(talk: Talk) -> None:
    one, other = Producer(talk, "one"), Producer(talk, "other")
    talk.ask(listing(ids=(one.producer_id,)))
    talk.ask(listing(ids=(other.producer_id, one.producer_id)))
    talk.ask(listing(ids=(2**60,)))


@conversation
def transactions_in_these_states(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    ids = (producer.producer_id,)
    for states in (("Empty",), ("Ongoing",), ("Empty", "Ongoing", "CompleteCommit")):
        talk.ask(listing(*states, ids=ids))
    producer.adds(topic)
    for states in (("Empty",), ("Ongoing",)):
        talk.ask(listing(*states, ids=ids))
    producer.ends(version=4)
    for later in (("Ongoing",), ("CompleteCommit", "CompleteAbort")):
        talk.ask(listing(*later, ids=ids))


@conversation
def states_that_do_not_exist_are_named(talk: Talk) -> None:
    producer = Producer(talk)
    ids = (producer.producer_id,)
    talk.ask(listing("Sleeping", ids=ids))
    talk.ask(listing("empty", "Empty", "", ids=ids))


def shown(answer: ListTransactionsResponse) -> bool:
    return bool(answer.transaction_states)


def not_shown(answer: ListTransactionsResponse) -> bool:
    return not answer.transaction_states


@conversation("1+")
def transactions_that_take_longer(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    ids = (producer.producer_id,)
    for duration_ms in (-1, 0, 3_600_000, -5):
        is_shown = shown if duration_ms < 3_600_000 else not_shown
        talk.ask(listing(ids=ids, duration_filter=duration_ms), until=is_shown)


@conversation("2+")
def transactional_ids_of_a_pattern(talk: Talk) -> None:
    one, other = Producer(talk, "one"), Producer(talk, "other")
    ids = (one.producer_id, other.producer_id)
    for pattern in ("one-.*", ".*", "one", "", None, "o(ne|ther)-.*"):
        talk.ask(listing(ids=ids, transactional_id_pattern=pattern))


@conversation("2+")
def a_pattern_that_is_none(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(
        listing(ids=(producer.producer_id,), transactional_id_pattern="(ne"), E.INVALID_REGULAR_EXPRESSION
    )
