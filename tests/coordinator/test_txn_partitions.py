"""Adding partitions to a transaction, and confirming that they are in it."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.transactions.core.state import TransactionState
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.transactions import START_MS, T0, T1, V1, V2, TransactionWorld


@pytest.mark.parametrize("version", [V1, V2])
def test_the_first_partition_begins_the_transaction(version: int) -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.advance(5)

    assert world.add(producer, T0, version=version) == ErrorCode.NONE
    assert world.metadata().state is TransactionState.ONGOING
    assert world.metadata().start_ms == START_MS + 5
    assert world.metadata().client_transaction_version == version


def test_more_partitions_join_and_the_start_stays() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, T0)
    world.advance(5)
    world.add(producer, T1)

    assert world.metadata().partitions == {T0, T1}
    assert world.metadata().start_ms == START_MS
    assert world.metadata().last_update_ms == START_MS + 5


def test_what_is_there_already_writes_nothing() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, T0, T1)
    before = len(world.log)

    assert world.add(producer, T1) == ErrorCode.NONE
    assert len(world.log) == before


def test_only_the_producer_of_the_id_in_its_epoch_may_add() -> None:
    world = TransactionWorld()
    producer_id, epoch = world.producer()

    assert world.add((producer_id + 1, epoch)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.add((producer_id, epoch + 1)) == ErrorCode.PRODUCER_FENCED
    assert world.add((producer_id, epoch), txn_id="another") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.metadata().state is TransactionState.EMPTY


def test_while_markers_are_written_the_next_transaction_has_to_wait() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer)
    next_epoch = world.end(producer)[1:]

    assert world.add(next_epoch) == ErrorCode.CONCURRENT_TRANSACTIONS
    # For an unknown producer id too: it may be the id that the producer is about to get.
    assert world.add((4711, 0)) == ErrorCode.CONCURRENT_TRANSACTIONS
    world.finish()
    assert world.add(next_epoch) == ErrorCode.NONE


def test_partitions_are_confirmed_one_by_one() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, T0)

    assert world.verify(producer, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}


def test_confirming_is_refused_to_whom_adding_would_be() -> None:
    world = TransactionWorld()
    producer_id, epoch = world.producer()
    world.add((producer_id, epoch))

    assert world.verify((producer_id + 1, epoch)) == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert world.verify((producer_id, epoch + 1)) == {T0: ErrorCode.PRODUCER_FENCED}
    assert world.verify((producer_id, epoch), txn_id="x") == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_nothing_is_confirmed_once_the_end_is_decided_or_done() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, version=V1)
    world.end(producer, version=V1)

    assert world.verify(producer) == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    world.finish()
    assert world.verify(producer) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
