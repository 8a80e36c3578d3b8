"""EndTxn (26): transactions become visible or vanish, and the producer goes on in its next epoch."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.end_txn import end_txn
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.transacting import Producer, committed_values, completed, described

generations = pytest.mark.parametrize("old", [True, False], ids=["version 1", "version 2"])


@generations
async def test_what_is_committed_is_seen_and_what_is_aborted_is_not(user: User, old: bool) -> None:
    await user.create_topic("t", 2)
    producer = await Producer.of(user, old=old)
    for number, commit in enumerate([True, False, True]):
        for partition in (0, 1):
            await producer.write("t", b"%d" % number, partition=partition)
        assert await committed_values(user, "t") == [b"0"][:number]
        await producer.end(commit=commit)

    for partition in (0, 1):
        assert await committed_values(user, "t", partition=partition) == [b"0", b"2"]


@pytest.mark.parametrize("version", every(end_txn))
async def test_every_version_ends_a_transaction(user: User, version: int) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=version < 5)
    await producer.write("t", b"v")

    answer = await producer.try_to_end(commit=True, version=version)

    assert answer.error_code == 0
    going_on = (producer.id, producer.epoch + 1) if version >= 5 else (-1, -1)
    assert (answer.producer_id, answer.producer_epoch) == going_on
    assert await completed(user) == "CompleteCommit"
    assert await committed_values(user, "t") == [b"v"]


@pytest.mark.parametrize("version", every(end_txn))
async def test_a_fenced_producer_is_told_so_in_the_words_of_its_version(user: User, version: int) -> None:
    producer = await Producer.of(user)
    await Producer.of(user)
    await Producer.of(user)

    answer = await producer.try_to_end(commit=True, version=version)

    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert ErrorCode(answer.error_code) == fenced


async def test_a_repeated_end_of_version_2_gets_the_same_answer(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    await producer.write("t", b"v")
    first = await producer.try_to_end(commit=True)
    await completed(user)

    assert await producer.try_to_end(commit=True) == first
    assert (await producer.try_to_end(commit=False)).error_code == ErrorCode.INVALID_TXN_STATE


async def test_version_2_may_abort_what_it_never_began(user: User) -> None:
    producer = await Producer.of(user)

    answer = await producer.try_to_end(commit=False)
    assert (answer.error_code, answer.producer_epoch) == (0, 1)
    assert await completed(user) == "CompleteAbort"
    assert (await producer.try_to_end(commit=True)).error_code == ErrorCode.PRODUCER_FENCED


async def test_partitions_that_are_deleted_meanwhile_do_not_keep_a_transaction_from_ending(
    user: User,
) -> None:
    for topic in ("kept", "gone"):
        await user.create_topic(topic)
    producer = await Producer.of(user)
    await producer.write("kept", b"v")
    await producer.write("gone", b"v")
    await user.delete_topic("gone")

    await producer.end(commit=True)
    assert await committed_values(user, "kept") == [b"v"]


async def test_the_end_waits_for_a_disk_that_is_full(home: Home, user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    await producer.write("t", b"v")
    partition = home.broker.node.broker.replicas.led("t", 0)
    assert partition is not None
    partition.log.state.offline = OSError(28, "No space left on device")
    assert (await producer.try_to_end(commit=True)).error_code == 0
    await home.pass_time(1_000)
    assert (await described(user)).transaction_state == "PrepareCommit"

    partition.log.state.offline = None
    await home.pass_time(1_000)
    assert await completed(user) == "CompleteCommit"
    assert await committed_values(user, "t") == [b"v"]


@generations
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_an_open_transaction_outlives_its_broker(home: Home, old: bool, commit: bool) -> None:
    async with home.running() as user:
        await user.create_topic("t")
        producer = await Producer.of(user, old=old)
        await producer.write("t", b"v")
        after = home.killed()
    async with after.running() as user:
        producer.user = user
        assert await committed_values(user, "t") == []
        await producer.write("t", b"w")
        await producer.end(commit=commit)
        assert await committed_values(user, "t") == ([b"v", b"w"] if commit else [])
        await producer.write("t", b"x")
        await producer.end()
        assert (await committed_values(user, "t"))[-1] == b"x"


async def test_a_transaction_over_its_time_is_aborted_and_its_producer_fenced(home: Home, user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, timeout_ms=5_000)
    await producer.write("t", b"v")

    await home.pass_time(11_000)

    assert await completed(user) == "CompleteAbort"
    assert await committed_values(user, "t") == []
    late = await producer.try_to_write("t", b"w")
    assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
