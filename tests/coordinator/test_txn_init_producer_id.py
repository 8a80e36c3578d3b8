"""InitProducerId with a transactional id: who gets which epoch, and who is fenced by it (KIP-98, KIP-360)."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.transactions.core.events import ProducerIdResult, WriteMarkers
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig, TransactionState
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.transactions import FIRST_PRODUCER_ID, ID, MINUTE_MS, T0, V1, V2, TransactionWorld

FIRST, SECOND = FIRST_PRODUCER_ID, FIRST_PRODUCER_ID + 1
LAST_FOR_CLIENTS = 32766


def ok(producer_id: int, producer_epoch: int) -> ProducerIdResult:
    return ProducerIdResult(ErrorCode.NONE, producer_id, producer_epoch)


def refused(error: ErrorCode) -> ProducerIdResult:
    return ProducerIdResult(error)


def in_epoch(world: TransactionWorld, epoch: int) -> tuple[int, int]:
    """A producer in some epoch, as after that many transactions."""
    world.producer()
    world.state = world.state.with_metadata(world.metadata()._replace(producer_epoch=epoch))
    return FIRST, epoch


def test_a_new_transactional_id_gets_a_new_producer_id_and_epoch_0() -> None:
    world = TransactionWorld()

    assert world.init() == ok(FIRST, 0)
    assert world.init(txn_id="refunds") == ok(SECOND, 0)


def test_each_new_producer_gets_the_next_epoch_and_fences_the_one_before() -> None:
    world = TransactionWorld()
    first, second = world.producer(), world.producer()

    assert (first, second) == ((FIRST, 0), (FIRST, 1))
    assert world.add(first) == ErrorCode.PRODUCER_FENCED
    assert world.add(second) == ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * MINUTE_MS + 1])
def test_a_timeout_must_be_positive_and_no_longer_than_allowed(timeout_ms: int) -> None:
    assert TransactionWorld().init(timeout_ms=timeout_ms) == refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def test_a_producer_that_says_what_it_holds_goes_on_with_the_next_epoch() -> None:
    world = TransactionWorld()
    producer = world.producer()

    assert world.init(producer) == ok(FIRST, 1)


def test_its_retry_gets_the_same_answer_and_no_further_epoch() -> None:
    world = TransactionWorld()
    producer = world.producer()
    answers = [world.init(producer) for _ in range(3)]

    assert answers == [ok(FIRST, 1)] * 3


def test_a_retry_is_fenced_once_another_producer_has_initialised() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.init(producer)
    world.producer()

    assert world.init(producer) == refused(ErrorCode.PRODUCER_FENCED)


def test_a_retry_is_not_known_as_one_after_the_coordinator_moved() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.init(producer)

    assert world.reload().init(producer) == refused(ErrorCode.PRODUCER_FENCED)


def test_an_unknown_producer_id_is_fenced() -> None:
    world = TransactionWorld()
    world.producer()

    assert world.init((4711, 0)) == refused(ErrorCode.PRODUCER_FENCED)


def test_who_holds_an_id_the_coordinator_has_forgotten_starts_anew() -> None:
    world = TransactionWorld()

    assert world.init((4711, 3)) == ok(FIRST, 0)


@pytest.mark.parametrize("level", [V1, V2])
def test_an_open_transaction_is_aborted_first_and_the_caller_comes_back(level: int) -> None:
    world = TransactionWorld(TransactionConfig(transaction_version=level))
    old = world.producer()
    world.add(old)

    assert world.init() == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert world.metadata().state is TransactionState.PREPARE_ABORT
    assert world.markers == [WriteMarkers(ID, FIRST, 1, False, frozenset({T0}), V2 if level == V2 else 0)]
    assert world.init() == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert world.end(old) == refused(ErrorCode.CONCURRENT_TRANSACTIONS)

    world.finish()
    assert world.init() == ok(FIRST, 2)
    assert world.add(old) == ErrorCode.PRODUCER_FENCED


def test_used_up_epochs_bring_a_new_producer_id() -> None:
    world = TransactionWorld()
    holds = in_epoch(world, LAST_FOR_CLIENTS)

    assert world.init() == ok(SECOND, 0)
    assert world.metadata().previous_producer_id == FIRST
    # The earlier producer does not know the new id, and is fenced.
    assert world.init((SECOND, 0)) == ok(SECOND, 1)
    assert world.init(holds) == refused(ErrorCode.PRODUCER_FENCED)


def test_a_retry_over_a_replaced_id_is_known_as_one() -> None:
    world = TransactionWorld()
    holds = in_epoch(world, LAST_FOR_CLIENTS)

    assert [world.init(holds) for _ in range(2)] == [ok(SECOND, 0)] * 2


def test_an_open_transaction_in_the_last_epoch_is_aborted_with_the_next_id_in_hand() -> None:
    world = TransactionWorld()
    world.add(in_epoch(world, LAST_FOR_CLIENTS))

    assert world.init() == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert (world.metadata().producer_epoch, world.metadata().next_producer_id) == (32767, SECOND)
    world.finish()
    assert world.init() == ok(SECOND, 1)


def test_the_timeout_asked_for_last_holds() -> None:
    world = TransactionWorld()
    world.init(timeout_ms=1_000)
    world.init(timeout_ms=2_000)

    assert world.metadata().timeout_ms == 2_000
