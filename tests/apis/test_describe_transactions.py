"""DescribeTransactions (65): how far transactions are."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_transactions import TopicData, TransactionState
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.transacting import ID, MINUTE_MS, Producer, described


async def test_an_open_transaction_is_described(home: Home, user: User) -> None:
    for topic in ("b", "a"):
        await user.create_topic(topic, 2)
    producer = await Producer.of(user)
    for topic, partition in (("b", 1), ("a", 1), ("a", 0)):
        await producer.write(topic, b"v", partition=partition)

    assert await described(user) == TransactionState(
        error_code=0,
        transactional_id=ID,
        transaction_state="Ongoing",
        transaction_timeout_ms=MINUTE_MS,
        transaction_start_time_ms=home.clock.now_ms(),
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[TopicData(topic="a", partitions=[0, 1]), TopicData(topic="b", partitions=[1])],
    )


async def test_an_ended_one_has_no_partitions_any_more(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    await producer.write("t", b"v")
    await producer.end(commit=False)

    found = await described(user)
    assert (found.transaction_state, found.topics) == ("CompleteAbort", [])
    assert (found.producer_id, found.producer_epoch) == (producer.id, producer.epoch)


async def test_unknown_and_empty_ids(user: User) -> None:
    await Producer.of(user)

    assert (await described(user, "unknown")).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert (await described(user, "")).error_code == ErrorCode.INVALID_REQUEST


async def test_before_the_first_find_coordinator_there_is_no_coordinator(user: User) -> None:
    assert (await described(user)).error_code == ErrorCode.NOT_COORDINATOR
