"""What happens to transactions by itself: those that take too long are aborted, unused ids are forgotten."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.records import encode_record
from pykafka_broker.coordinator.transactions.core.state import (
    NO_TIMEOUT_MS,
    TransactionConfig,
    TransactionState,
)
from pykafka_broker.coordinator.transactions.core.timers import (
    ABORT_TIMER,
    EXPIRY_TIMER,
    MAX_ABORTED_AT_ONCE,
    MAX_FORGOTTEN_AT_ONCE,
)
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import TopicPartition
from tests.support.transactions import (
    FIRST_PRODUCER_ID,
    ID,
    MINUTE_MS,
    START_MS,
    T0,
    V1,
    V2,
    TransactionWorld,
)

HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
#: The largest batch that a topic takes by default (max.message.bytes).
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
#: For stories of days, in which nothing times out.
RARELY = {"transaction_abort_timed_out_interval_ms": HOUR_MS}


def loaded(**config: int) -> TransactionWorld:
    world = TransactionWorld(TransactionConfig(**config))
    world.submit(events.Loaded(world.now_ms))
    return world


@pytest.mark.parametrize("level", [V1, V2])
def test_a_transaction_over_its_time_is_aborted_and_its_producer_fenced(level: int) -> None:
    world = loaded(transaction_version=level)
    producer = world.producer(timeout_ms=25_000)
    world.add(producer, version=level)

    world.advance(29_999)
    assert world.metadata().state is TransactionState.ONGOING
    world.advance(1)

    assert world.metadata().state is TransactionState.PREPARE_ABORT
    [marker] = world.finish()
    assert (marker.commit, marker.partitions, marker.producer_epoch) == (False, frozenset({T0}), 1)
    assert world.metadata().state is TransactionState.COMPLETE_ABORT
    assert world.add(producer, version=level) == ErrorCode.PRODUCER_FENCED
    # Apache Kafka 4.3 has INVALID_TXN_STATE for V2, after which a thread of Kafka Streams does not go on.
    assert world.end(producer, version=level).error == ErrorCode.PRODUCER_FENCED


def test_a_fenced_producer_of_version_2_that_repeats_its_abort_is_told_it_worked() -> None:
    world = loaded()
    producer = world.producer(timeout_ms=1_000)
    world.add(producer)
    world.advance(10_000)
    world.finish()

    assert world.end(producer, commit=False).error == ErrorCode.NONE


def test_time_counts_from_the_first_partition_of_each_transaction() -> None:
    world = loaded()
    producer = world.producer(timeout_ms=25_000)
    world.advance(5 * MINUTE_MS)
    world.add(producer)
    world.advance(20_000)
    assert world.metadata().state is TransactionState.ONGOING
    next_one = world.end(producer)[1:]
    world.finish()
    world.add(next_one)
    world.advance(20_000)

    assert world.metadata().state is TransactionState.ONGOING


def test_transactions_that_an_outside_coordinator_decides_on_never_time_out() -> None:
    world = loaded(transaction_max_timeout_ms=NO_TIMEOUT_MS, **RARELY)
    world.add(world.producer(timeout_ms=NO_TIMEOUT_MS))
    world.advance(60 * DAY_MS)

    assert world.metadata().state is TransactionState.ONGOING


def test_the_search_goes_on_after_the_coordinator_moved() -> None:
    world = loaded()
    world.add(world.producer(timeout_ms=5_000))
    after = world.reload()
    after.advance(10_000)

    assert after.metadata().state is TransactionState.PREPARE_ABORT


def test_in_the_last_epoch_the_abort_waits_for_a_new_producer_id() -> None:
    world = loaded()
    world.producer(timeout_ms=5_000)
    world.state = world.state.with_metadata(world.metadata()._replace(producer_epoch=32766))
    world.add((FIRST_PRODUCER_ID, 32766))
    world.advance(10_000)
    assert world.metadata().state is TransactionState.ONGOING

    world.find_producer_ids()
    assert world.metadata().state is TransactionState.PREPARE_ABORT
    world.finish()
    assert world.init()[1:] == (FIRST_PRODUCER_ID + 1, 1)


def test_a_producer_id_that_comes_too_late_aborts_nothing() -> None:
    world = loaded()
    producer = world.producer(timeout_ms=5_000)
    world.state = world.state.with_metadata(world.metadata()._replace(producer_epoch=32766))
    world.add((producer[0], 32766))
    world.advance(10_000)
    world.end((producer[0], 32766))
    before = world.state

    world.find_producer_ids()
    assert world.state == before


def test_many_at_once_are_aborted_in_turns_but_all_at_the_same_moment() -> None:
    world = loaded()
    names = [f"id-{n}" for n in range(2 * MAX_ABORTED_AT_ONCE + 1)]
    for name in names:
        world.add(world.producer(txn_id=name, timeout_ms=1_000), txn_id=name)
    world.advance(10_000)

    assert len(world.markers) == len(names)
    assert len(world.last_records) == 1


def test_transactions_of_many_partitions_are_aborted_in_batches_that_the_log_takes() -> None:
    # One batch had all of them: the log refused it, every half second, and no transaction was aborted.
    world = loaded(**RARELY)
    wide = [TopicPartition(f"{number:0249}", 0) for number in range(100)]
    names = [f"id-{n}" for n in range(50)]
    for name in names:
        world.add(world.producer(txn_id=name, timeout_ms=1_000), *wide, txn_id=name)
    sizes = []
    while len(world.markers) < len(names):
        world.fire(ABORT_TIMER)
        written = [encode_record(record) for record in world.last_records]
        sizes.append(sum(len(key) + len(value or b"") for key, value in written))

    assert max(sizes) < DEFAULT_MAX_MESSAGE_BYTES < sum(sizes)
    assert world.timers[ABORT_TIMER] == START_MS + 2 * HOUR_MS


def test_an_unused_id_is_forgotten_after_a_week() -> None:
    world = loaded(**RARELY)
    producer = world.producer()
    world.add(producer)
    world.end(producer)
    world.finish()
    world.advance(7 * DAY_MS - HOUR_MS)
    assert ID in world.state.by_id
    world.advance(HOUR_MS)

    assert dict(world.state.by_id) == {}
    assert world.add(producer) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert dict(world.reload().state.by_id) == {}


def test_many_unused_ids_are_forgotten_in_slices() -> None:
    world = loaded(**RARELY)
    for number in range(2 * MAX_FORGOTTEN_AT_ONCE + 1):
        world.producer(txn_id=f"id-{number}")
    world.advance(7 * DAY_MS - 1)
    slices = []
    while world.state.by_id:
        world.fire(EXPIRY_TIMER)
        slices.append((len(world.last_records), world.now_ms - START_MS))

    assert slices == [(MAX_FORGOTTEN_AT_ONCE, 7 * DAY_MS)] * 2 + [(1, 7 * DAY_MS)]
    assert world.timers[EXPIRY_TIMER] == world.now_ms + HOUR_MS
    assert dict(world.reload().state.by_id) == {}


def test_a_producer_that_initialises_in_time_keeps_the_id() -> None:
    world = loaded(**RARELY)
    world.producer()
    world.advance(6 * DAY_MS)
    world.init()
    world.advance(6 * DAY_MS)

    assert ID in world.state.by_id


def test_open_and_undone_transactions_are_never_forgotten() -> None:
    world = loaded(transaction_max_timeout_ms=NO_TIMEOUT_MS, **RARELY)
    world.add(world.producer(timeout_ms=NO_TIMEOUT_MS))
    other = world.producer(txn_id="other")
    world.add(other, txn_id="other")
    world.end(other, txn_id="other")
    world.advance(30 * DAY_MS)

    assert {m.state for m in world.state.by_id.values()} == {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
    }


def test_administrators_see_states_partitions_and_durations() -> None:
    world = loaded()
    producer = world.producer()
    world.add(producer)
    world.producer(txn_id="idle")
    world.advance(5_000)

    described = world.ask(events.DescribeTransaction, ID)
    assert described == events.DescribedTransaction(
        ErrorCode.NONE, "Ongoing", MINUTE_MS, world.now_ms - 5_000, *producer, frozenset({T0})
    )
    unknown = world.ask(events.DescribeTransaction, "unknown")
    assert unknown.error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def listed(**filters: object) -> set[str]:
        answer = world.ask(events.ListTransactions, world.now_ms, **filters)
        return {line.transactional_id for line in answer}

    assert listed() == {ID, "idle"}
    assert listed(states=frozenset({"Ongoing", "CompleteCommit"})) == {ID}
    assert listed(producer_ids=frozenset({producer[0]})) == {ID}
    assert listed(duration_ms=4_999) == {ID, "idle"}
    assert listed(duration_ms=5_000) == {"idle"}  # as in Kafka: what never began began long ago
