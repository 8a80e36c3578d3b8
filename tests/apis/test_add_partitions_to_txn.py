"""AddPartitionsToTxn (24): clients announce partitions, brokers add or verify those of many transactions."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from pykafka_broker.testing.user import User
from tests.apis.transacting import ID, Producer, described

OK = ErrorCode.NONE
CLIENTS, BROKERS = [0, 1, 2, 3], [4, 5]


def of_brokers(*transactions: tuple[Producer, list[tuple[str, list[int]]], bool]) -> Any:
    """A request of v4 and later: (producer, topics, verify only) for each transaction."""
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                verify_only=verify_only,
                topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics],
            )
            for producer, topics, verify_only in transactions
        ]
    )


def errors(answer: Any) -> dict[str, list[ErrorCode]]:
    """By transactional id, the errors of all its partitions in order."""
    return {
        result.transactional_id: [
            ErrorCode(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        ]
        for result in answer.results_by_transaction
    }


@pytest.mark.parametrize("version", CLIENTS)
async def test_a_client_adds_partitions_and_the_transaction_is_open(user: User, version: int) -> None:
    await user.create_topic("t", 2)
    producer = await Producer.of(user, old=True)

    assert await producer.try_to_add("t", 0, 1, version=version) == [OK, OK]
    found = await described(user)
    assert found.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0, 1])]


@pytest.mark.parametrize("version", CLIENTS)
async def test_a_fenced_producer_is_told_so_in_the_words_of_its_version(user: User, version: int) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=True)
    await Producer.of(user)

    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.try_to_add("t", version=version) == [fenced]


async def test_all_partitions_are_added_or_none(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=True)

    refused = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await producer.try_to_add("t", 0, 1) == refused
    assert await producer.try_to_add("missing") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (await described(user)).transaction_state == "Empty"


async def test_clients_may_not_add_internal_topics(user: User) -> None:
    producer = await Producer.of(user, old=True)

    assert await producer.try_to_add("__transaction_state") == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("version", BROKERS)
async def test_a_broker_adds_and_verifies_for_many_transactions_at_once(user: User, version: int) -> None:
    await user.create_topic("t", 2)
    adding, asking = await Producer.of(user, "a"), await Producer.of(user, "b", old=True)
    await asking.try_to_add("t", 0)

    request = of_brokers((adding, [("t", [1])], False), (asking, [("t", [0, 1])], True))
    answer = await user.send(request, version)

    assert errors(answer) == {"a": [OK], "b": [OK, ErrorCode.TRANSACTION_ABORTABLE]}
    assert (await described(user, "a")).topics[0].partitions == [1]
    assert (await described(user, "b")).topics[0].partitions == [0]


@pytest.mark.parametrize("version", BROKERS)
async def test_one_transactions_failure_does_not_touch_the_others(user: User, version: int) -> None:
    await user.create_topic("t")
    good, bad = await Producer.of(user, "good"), await Producer.of(user, "bad")
    bad.epoch += 1

    answer = await user.send(of_brokers((bad, [("t", [0])], False), (good, [("t", [0])], False)), version)

    assert errors(answer) == {"bad": [ErrorCode.PRODUCER_FENCED], "good": [OK]}


async def test_no_transactions_get_no_results(user: User) -> None:
    answer = await user.send(AddPartitionsToTxnRequest(transactions=[]), 5)

    assert (answer.error_code, answer.results_by_transaction) == (0, [])


async def test_before_the_first_find_coordinator_there_is_no_coordinator(user: User) -> None:
    await user.create_topic("t")
    producer = Producer(user, ID, old=True)

    assert await producer.try_to_add("t") == [ErrorCode.NOT_COORDINATOR]


async def test_an_empty_transactional_id_is_no_id(user: User) -> None:
    await user.create_topic("t")
    await Producer.of(user)

    assert await Producer(user, "", old=True).try_to_add("t") == [ErrorCode.INVALID_REQUEST]
