"""No transactional record enters a log behind the coordinator's back; no marker ends another transaction.

KIP-890 (verification) and KIP-1228 (markers checked by the transaction's version).
"""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, append, batch, end_transaction, new_log, produce

DAY_MS = 86_400_000


@pytest.fixture
def log() -> PartitionLog:
    return new_log(MemoryFiles())


def ask(
    log: PartitionLog, *, epoch: int = 0, sequence: int = 0, bumps_epoch: bool = False, now_ms: int = NOW
) -> int:
    return log.writer.start_verification(1, epoch, sequence, bumps_epoch=bumps_epoch, now_ms=now_ms)


def write(log: PartitionLog, guard: int, *, sequence: int = 0, epoch: int = 0) -> AppendResult:
    records = batch(b"v", producer_id=1, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    return log.writer.append(records, leader_epoch=0, now_ms=NOW, guard=guard)


def code_of(attempt: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        attempt()
    return refusal.value.code


def test_the_first_batch_needs_the_guard_of_a_question_and_the_next_ones_need_none(log: PartitionLog) -> None:
    assert code_of(lambda: write(log, NO_GUARD)) == ErrorCode.INVALID_TXN_STATE
    guard = ask(log)
    assert code_of(lambda: write(log, guard + 1)) == ErrorCode.INVALID_TXN_STATE

    write(log, guard)
    assert ask(log) == NO_GUARD
    write(log, NO_GUARD, sequence=1)


def test_a_retry_asks_the_same_question(log: PartitionLog) -> None:
    assert ask(log) == ask(log)


def test_an_answer_that_comes_after_the_marker_is_worth_nothing(log: PartitionLog) -> None:
    late = ask(log)
    end_transaction(log, 1, commit=False)
    assert code_of(lambda: write(log, late)) == ErrorCode.INVALID_TXN_STATE

    again = ask(log)
    assert again != late
    assert code_of(lambda: write(log, late)) == ErrorCode.INVALID_TXN_STATE
    write(log, again)


def test_a_guard_is_used_up_by_the_append(log: PartitionLog) -> None:
    guard = ask(log)
    write(log, guard)
    end_transaction(log, 1, commit=True)

    assert code_of(lambda: write(log, guard, sequence=1)) == ErrorCode.INVALID_TXN_STATE


def test_a_late_marker_leaves_the_question_about_the_next_transaction_standing(log: PartitionLog) -> None:
    write(log, ask(log, bumps_epoch=True))
    guard = ask(log, epoch=1, bumps_epoch=True)
    end_transaction(log, 1, commit=True, producer_epoch=1, transaction_version=2)

    write(log, guard, epoch=1)


def test_an_epoch_that_is_over_may_not_even_ask(log: PartitionLog) -> None:
    produce(log, 1, 0, producer_epoch=3)

    assert code_of(lambda: ask(log, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(lambda: write(log, NO_GUARD, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_later_batch_may_not_overtake_the_one_that_is_being_verified(log: PartitionLog) -> None:
    ask(log, sequence=5)
    guard = ask(log, sequence=3)

    assert code_of(lambda: write(log, guard, sequence=5)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, guard, sequence=3)


def test_a_question_that_came_to_nothing_does_not_hold_up_who_has_a_transaction_open(
    log: PartitionLog,
) -> None:
    """Apache Kafka refuses the second batch: the question of a stranger was about sequence 0."""
    write(log, ask(log))
    ask(log, epoch=1, sequence=0)

    assert write(log, NO_GUARD, sequence=1).first_offset == 1


def test_a_new_epoch_starts_its_sequences_anew(log: PartitionLog) -> None:
    ask(log, sequence=3)
    guard = ask(log, epoch=1, sequence=7)

    write(log, guard, epoch=1, sequence=7)


def test_a_producer_of_version_2_must_begin_at_0_where_nothing_is_known_of_it(log: PartitionLog) -> None:
    guard = ask(log, sequence=4, bumps_epoch=True)

    assert code_of(lambda: write(log, guard, sequence=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    guard = ask(log, sequence=0, bumps_epoch=True)
    write(log, guard, sequence=0)


def test_an_unused_guard_is_forgotten_after_a_day(log: PartitionLog) -> None:
    guard = ask(log)
    log.state.expire_producers(NOW + DAY_MS - 1)
    assert ask(log) == guard
    log.state.expire_producers(NOW + DAY_MS)
    assert ask(log) != guard


def test_the_check_can_be_switched_off(log: PartitionLog) -> None:
    log.state.reconfigure(log.state.config._replace(transaction_partition_verification_enable=False))

    write(log, NO_GUARD)
    assert (log.state.last_stable_offset, log.state.log_end_offset) == (0, 1)


def test_offsets_committed_in_a_transaction_are_verified_too_and_have_no_sequence(log: PartitionLog) -> None:
    def commit(guard: int) -> AppendResult:
        records = build_batch(
            [(NOW, b"k", b"v", ()), (NOW, b"l", b"v", ())],
            BatchFields(producer_id=1, producer_epoch=0, transactional=True),
        )
        return log.writer.append(
            records, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR, guard=guard
        )

    assert code_of(lambda: commit(NO_GUARD)) == ErrorCode.INVALID_TXN_STATE
    commit(ask(log, sequence=-1))
    commit(NO_GUARD)

    [state] = log.state.active_producers()
    assert (state.last_sequence, state.current_txn_first_offset) == (-1, 0)


# ---- markers -----------------------------------------------------------------------------------------


def test_a_marker_of_version_1_has_the_epoch_of_the_records(log: PartitionLog) -> None:
    write(log, ask(log))
    end_transaction(log, 1, commit=True, producer_epoch=0, transaction_version=1)

    log.state.advance_high_watermark(2)
    assert log.state.last_stable_offset == 2


def test_a_marker_of_version_2_with_the_epoch_of_the_records_belongs_to_an_earlier_transaction(
    log: PartitionLog,
) -> None:
    write(log, ask(log, epoch=1), epoch=1)

    late = lambda: end_transaction(log, 1, commit=True, producer_epoch=1, transaction_version=2)  # noqa: E731
    assert code_of(late) == ErrorCode.INVALID_PRODUCER_EPOCH
    end_transaction(log, 1, commit=False, producer_epoch=2, transaction_version=2)
    log.state.advance_high_watermark(2)
    assert log.state.last_stable_offset == 2


def test_a_marker_written_twice_does_no_harm(log: PartitionLog) -> None:
    write(log, ask(log))
    for _ in range(2):
        end_transaction(log, 1, commit=True, producer_epoch=1, transaction_version=2)

    log.state.advance_high_watermark(3)
    assert (log.state.last_stable_offset, log.state.log_end_offset) == (3, 3)


def test_a_transaction_in_the_very_last_epoch_can_still_be_ended(log: PartitionLog) -> None:
    last = 2**15 - 1
    write(log, ask(log, epoch=last), epoch=last)

    end_transaction(log, 1, commit=False, producer_epoch=last, transaction_version=2)
    log.state.advance_high_watermark(2)
    assert log.state.last_stable_offset == 2


def test_a_marker_of_an_older_epoch_is_refused_in_every_version(log: PartitionLog) -> None:
    write(log, ask(log, epoch=5), epoch=5)

    for version in (0, 1, 2):
        old = lambda v=version: end_transaction(  # noqa: E731
            log, 1, commit=True, producer_epoch=4, transaction_version=v
        )
        assert code_of(old) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_deposed_coordinators_marker_is_refused(log: PartitionLog) -> None:
    write(log, ask(log))
    end_transaction(log, 1, commit=True, coordinator_epoch=3)
    write(log, ask(log, sequence=1), sequence=1)

    zombie = lambda: end_transaction(log, 1, commit=False, coordinator_epoch=2)  # noqa: E731
    assert code_of(zombie) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_plain_records_are_refused_inside_a_transaction(log: PartitionLog) -> None:
    write(log, ask(log))

    plain = lambda: append(log, b"p", producer_id=1, producer_epoch=0, base_sequence=1)  # noqa: E731
    assert code_of(plain) == ErrorCode.INVALID_TXN_STATE
