"""Commit and abort: the decision, the markers, the next epoch, and what a retry is told (KIP-98, KIP-890)."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.transactions.core.events import MarkersWritten, ProducerIdResult, WriteMarkers
from pykafka_broker.coordinator.transactions.core.state import TransactionMetadata, TransactionState
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.transactions import FIRST_PRODUCER_ID, ID, T0, T1, V1, V2, TransactionWorld

FIRST, SECOND = FIRST_PRODUCER_ID, FIRST_PRODUCER_ID + 1
OK, FENCED, INVALID = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE
WAIT = ErrorCode.CONCURRENT_TRANSACTIONS

either_way = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])


def open_transaction(world: TransactionWorld, version: int = V2) -> tuple[int, int]:
    producer = world.producer()
    world.add(producer, T0, T1, version=version)
    return producer


def complete(commit: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT


def prepared(commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT


@either_way
def test_version_1_keeps_the_epoch_and_is_told_nothing_else(commit: bool) -> None:
    world = TransactionWorld()
    producer = open_transaction(world, V1)

    assert world.end(producer, commit=commit, version=V1) == ProducerIdResult(OK)
    assert world.metadata().state is prepared(commit)
    assert world.finish() == [WriteMarkers(ID, *producer, commit, frozenset({T0, T1}), 0)]
    assert world.metadata().state is complete(commit)
    assert world.add(producer) == OK


@either_way
def test_version_2_gets_a_new_epoch_and_the_markers_have_it_already(commit: bool) -> None:
    world = TransactionWorld()
    producer = open_transaction(world)

    assert world.end(producer, commit=commit) == ProducerIdResult(OK, FIRST, 1)
    assert world.finish() == [WriteMarkers(ID, FIRST, 1, commit, frozenset({T0, T1}), V2)]
    assert world.metadata().state is complete(commit)
    assert world.add(producer) == FENCED
    assert world.add((FIRST, 1)) == OK


@either_way
@pytest.mark.parametrize("version", [V1, V2])
def test_until_every_marker_is_written_other_requests_have_to_wait(commit: bool, version: int) -> None:
    world = TransactionWorld()
    producer = open_transaction(world, version)
    world.end(producer, commit=commit, version=version)

    assert world.end(producer, commit=commit, version=version).error == WAIT
    assert world.init().error == WAIT
    assert world.metadata().state is prepared(commit)


#: (the same end again, the other end) after a commit or an abort that is complete.
@either_way
def test_version_1_may_repeat_an_end_but_not_change_its_mind(commit: bool) -> None:
    world = TransactionWorld()
    producer = open_transaction(world, V1)
    world.end(producer, commit=commit, version=V1)
    world.finish()

    assert world.end(producer, commit=commit, version=V1) == ProducerIdResult(OK)
    assert world.end(producer, commit=not commit, version=V1) == ProducerIdResult(INVALID)
    assert world.markers == []


def test_version_1_cannot_end_what_has_not_begun() -> None:
    world = TransactionWorld()
    producer = world.producer()

    for commit in (True, False):
        assert world.end(producer, commit=commit, version=V1) == ProducerIdResult(INVALID)


@either_way
def test_version_2_is_answered_again_when_it_repeats_an_end_with_the_old_epoch(commit: bool) -> None:
    world = TransactionWorld()
    producer = open_transaction(world)
    first = world.end(producer, commit=commit)
    world.finish()

    assert world.end(producer, commit=commit) == first
    assert world.end(producer, commit=not commit) == ProducerIdResult(INVALID if commit else FENCED)


@either_way
def test_version_2_may_abort_nothing_and_gets_an_epoch_for_it(commit: bool) -> None:
    world = TransactionWorld()
    producer = open_transaction(world)
    world.end(producer, commit=commit)
    world.finish()
    world.advance(7)

    assert world.end((FIRST, 1), commit=False) == ProducerIdResult(OK, FIRST, 2)
    assert world.finish() == [WriteMarkers(ID, FIRST, 2, False, frozenset(), V2)]
    assert world.metadata().state is TransactionState.COMPLETE_ABORT
    assert world.metadata().start_ms == world.now_ms


def test_version_2_may_abort_before_its_first_transaction_but_not_with_a_wrong_epoch() -> None:
    world = TransactionWorld()
    world.producer()
    world.producer()

    assert world.end((FIRST, 0), commit=False).error == FENCED
    assert world.end((FIRST, 1), commit=False) == ProducerIdResult(OK, FIRST, 2)


def test_version_2_cannot_commit_nothing() -> None:
    world = TransactionWorld()
    producer = world.producer()

    assert world.end(producer).error == INVALID
    world.add(producer)
    world.end(producer)
    world.finish()
    assert world.end((FIRST, 1)).error == INVALID


@either_way
@pytest.mark.parametrize("version", [V1, V2])
def test_only_the_producer_of_the_id_in_its_epoch_may_end(commit: bool, version: int) -> None:
    world = TransactionWorld()
    producer_id, epoch = open_transaction(world, version)

    def end(producer: tuple[int, int], txn_id: str = ID) -> ErrorCode:
        return world.end(producer, commit=commit, version=version, txn_id=txn_id).error

    assert end((producer_id + 1, epoch)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end((producer_id, epoch + 1)) == FENCED
    assert end((producer_id, epoch - 1)) == FENCED
    assert end((producer_id, epoch), "another") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.metadata().state is TransactionState.ONGOING


@either_way
def test_the_last_epoch_ends_with_a_new_producer_id(commit: bool) -> None:
    world = TransactionWorld()
    world.producer()
    world.state = world.state.with_metadata(world.metadata()._replace(producer_epoch=32766))
    producer = FIRST, 32766
    world.add(producer)

    assert world.end(producer, commit=commit) == ProducerIdResult(OK, SECOND, 0)
    assert [marker.producer_epoch for marker in world.markers] == [32767]
    assert world.add((SECOND, 0)) == WAIT
    world.finish()
    assert world.end(producer, commit=commit) == ProducerIdResult(OK, SECOND, 0)
    assert world.end(producer, commit=not commit).error == (INVALID if commit else FENCED)
    assert world.add((SECOND, 0)) == OK
    assert world.end(producer, commit=commit).error == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_broken_producer_in_the_very_last_epoch_can_still_abort() -> None:
    world = TransactionWorld()
    producer = open_transaction(world)
    world.state = world.state.with_metadata(world.metadata()._replace(producer_epoch=32767))

    assert world.end((producer[0], 32767), commit=False) == ProducerIdResult(OK, SECOND, 0)
    assert [marker.producer_epoch for marker in world.markers] == [32767]


def test_an_old_client_beside_a_new_one_takes_over_and_keeps_its_epoch() -> None:
    world = TransactionWorld()
    open_transaction(world)
    world.init()
    world.finish()
    old = world.producer()
    world.add(old, version=V1)

    assert world.end(old, version=V1) == ProducerIdResult(OK)
    assert world.finish() == [WriteMarkers(ID, *old, True, frozenset({T0}), 0)]


def test_a_report_about_markers_of_an_earlier_transaction_completes_nothing() -> None:
    world = TransactionWorld()
    producer = open_transaction(world)
    world.end(producer)
    world.finish()
    late = MarkersWritten(world.now_ms, ID, FIRST, 1)
    world.add((FIRST, 1))
    world.end((FIRST, 1))
    before = world.state

    world.submit(late)
    world.submit(late._replace(transactional_id="gone"))
    assert world.state == before


@either_way
@pytest.mark.parametrize("version", [V1, V2])
def test_a_decision_survives_its_coordinator_and_is_carried_out_by_the_next(
    commit: bool, version: int
) -> None:
    world = TransactionWorld()
    producer = open_transaction(world, version)
    world.end(producer, commit=commit, version=version)
    lost = world.markers

    after = world.reload()
    assert after.markers == lost
    assert after.end(producer, commit=not commit, version=version).error == WAIT
    after.finish()
    assert after.metadata().state is complete(commit)


def test_an_open_transaction_survives_its_coordinator() -> None:
    world = TransactionWorld()
    producer = open_transaction(world)

    after = world.reload()
    assert after.markers == []
    assert set(after.verify(producer, T0, T1).values()) == {OK}
    assert after.end(producer) == ProducerIdResult(OK, FIRST, 1)


def test_a_transaction_that_was_decided_is_never_decided_otherwise() -> None:
    committing = TransactionMetadata(ID, FIRST, 60_000, 0, state=TransactionState.PREPARE_COMMIT)

    with pytest.raises(IllegalState, match=r"PREPARE_COMMIT to .*PREPARE_ABORT"):
        committing.moved_to(TransactionState.PREPARE_ABORT)
