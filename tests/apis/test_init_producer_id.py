"""InitProducerId (22): every idempotent producer gets an id of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.init_producer_id import init_producer_id
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every
from tests.apis.transacting import Producer, committed_values, completed, coordinated

REFUSED = InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)


def asking(transactional_id: str | None = None, **given: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000, **given)


@pytest.mark.parametrize("version", every(init_producer_id))
async def test_every_call_gives_a_new_id_and_epoch_0(user: User, version: int) -> None:
    answers = [await user.send(asking(), version) for _ in range(3)]

    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(0, 0)] * 3
    assert len({answer.producer_id for answer in answers}) == 3


async def test_ids_are_not_given_out_again_after_a_restart(home: Home) -> None:
    async with home.running() as user:
        before = await user.new_producer_id()
    async with home.running() as user:
        assert await user.new_producer_id() > before


async def test_ids_are_not_given_out_again_after_a_crash(home: Home) -> None:
    async with home.running() as user:
        before = await user.new_producer_id()
        after = home.killed()
    async with after.running() as user:
        assert await user.new_producer_id() > before


@pytest.mark.parametrize("version", ends(init_producer_id, since=3))
async def test_without_a_transactional_id_the_id_a_producer_holds_does_not_matter(
    user: User, version: int
) -> None:
    answer = await user.send(asking(producer_id=4711, producer_epoch=3), version)

    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != 4711


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 0}])
@pytest.mark.parametrize("version", ends(init_producer_id, since=3))
async def test_an_id_without_an_epoch_or_the_reverse_is_no_producers_state(
    user: User, version: int, half: dict[str, Any]
) -> None:
    assert await user.send(asking(**half), version) == REFUSED


@pytest.mark.parametrize("version", ends(init_producer_id))
async def test_an_empty_transactional_id_is_no_id(user: User, version: int) -> None:
    assert await user.send(asking(""), version) == REFUSED


@pytest.mark.parametrize("version", ends(init_producer_id))
async def test_before_the_first_find_coordinator_there_is_no_coordinator(user: User, version: int) -> None:
    assert (await user.send(asking("payments"), version)).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", every(init_producer_id))
async def test_each_producer_of_a_transactional_id_gets_the_next_epoch(user: User, version: int) -> None:
    await coordinated(user)
    answers = [await user.send(asking("payments"), version) for _ in range(3)]

    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(0, 0), (0, 1), (0, 2)]
    assert len({answer.producer_id for answer in answers}) == 1


async def test_epochs_go_on_after_a_crash(home: Home) -> None:
    async with home.running() as user:
        before = await Producer.of(user)
        after = home.killed()
    async with after.running() as user:
        later = await Producer.of(user)
        assert (later.id, later.epoch) == (before.id, before.epoch + 1)


@pytest.mark.parametrize("version", ends(init_producer_id, since=3))
async def test_who_was_fenced_is_told_so_in_the_words_of_its_version(user: User, version: int) -> None:
    first = await Producer.of(user)
    await Producer.of(user)
    await Producer.of(user)
    holds = asking("payments", producer_id=first.id, producer_epoch=first.epoch)

    fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await user.send(holds, version)).error_code == fenced


async def test_an_open_transaction_is_aborted_before_the_next_producer_begins(user: User) -> None:
    await user.create_topic("t")
    first = await Producer.of(user)
    await first.write("t", b"v")

    assert (await user.send(asking("payments"), 5)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert await completed(user) == "CompleteAbort"
    second = await Producer.of(user)
    assert (second.id, second.epoch) == (first.id, first.epoch + 2)
    assert await committed_values(user, "t") == []


@pytest.mark.parametrize("timeout_ms", [0, 15 * 60_000 + 1])
async def test_a_timeout_must_be_positive_and_no_longer_than_allowed(user: User, timeout_ms: int) -> None:
    await coordinated(user)
    request = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=timeout_ms)

    assert (await user.send(request, 5)).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def test_without_a_transactional_id_its_timeout_does_not_matter(user: User) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)

    assert (await user.send(request, 5)).error_code == 0
