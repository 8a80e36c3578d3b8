"""What a member gets of the records that were read: new ones, and such as come back (KIP-932, KIP-1206)."""

from __future__ import annotations

import pytest

from pykafka_broker.share.core import events
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import AbortedTransaction, AcquireMode, FetchedBatch
from tests.support.share_partition import ACCEPT, RELEASE, Share

LIMIT = AcquireMode.RECORD_LIMIT


def test_new_records_are_acquired_in_one_piece_and_the_next_fetch_begins_behind_them() -> None:
    share = Share()

    assert share.next_offset() == 0
    assert share.acquire("ann", (0, 4), (5, 9)) == [(0, 9, 1)]
    assert share.records() == ["0-9 acquired 1 ann"]
    assert share.next_offset() == 10
    assert share.acquire("ben", (10, 12)) == [(10, 12, 1)]


def test_acquired_batches_are_cut_where_record_batches_begin_once_they_are_large_enough() -> None:
    share = Share()

    got = share.acquire("ann", (0, 2), (3, 5), (6, 6), (7, 20), (21, 22), batch_size=5)

    assert got == [(0, 5, 1), (6, 20, 1), (21, 22, 1)]


def test_whole_record_batches_go_beyond_the_limit_of_a_request() -> None:
    share = Share()

    assert share.acquire("ann", (0, 4), (5, 9), (10, 14), max_records=7) == [(0, 9, 1)]
    assert share.next_offset() == 10


def test_a_record_limit_is_kept_to_the_record_and_the_rest_of_the_batch_is_available() -> None:
    share = Share()

    assert share.acquire("ann", (0, 4), (5, 9), (10, 14), max_records=7, mode=LIMIT) == [(0, 6, 1)]
    assert share.records() == ["0-6 acquired 1 ann", "7-9 available 0"]
    assert share.next_offset() == 7
    assert share.acquire("ben", (5, 9), (10, 14), max_records=7, mode=LIMIT) == [(7, 9, 1), (10, 13, 1)]


def test_what_is_available_again_comes_before_what_is_new() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.acquire("ann", (5, 9))
    share.release("ann", 0, 4)

    assert share.next_offset() == 0
    assert share.acquire("ben", (0, 4), (5, 9), (10, 14)) == [(0, 4, 2), (10, 14, 1)]


def test_a_part_of_a_batch_comes_back_alone() -> None:
    share = Share()
    share.acquire("ann", (0, 9))
    share.release("ann", 3, 5)

    assert share.next_offset() == 3
    assert share.acquire("ben", (0, 9), fetch_offset=3) == [(3, 5, 2)]
    assert share.records() == ["0-2 acquired 1 ann", "3-5 acquired 2 ben", "6-9 acquired 1 ann"]


def test_nothing_new_is_read_at_the_limit_of_records_in_flight_but_released_ones_are() -> None:
    share = Share(config=ShareConfig(partition_max_record_locks=10))
    share.acquire("ann", (0, 4), (5, 9))

    assert share.next_offset() is None
    share.release("ann", 5, 9)
    assert share.next_offset() == 5
    assert share.acquire("ben", (5, 9), (10, 14)) == [(5, 9, 2)]
    assert share.next_offset() is None
    share.accept("ann", 0, 4)
    assert share.next_offset() == 10


def test_one_fetch_at_a_time() -> None:
    share = Share()

    assert share.ask(events.BeginFetch, 7) == 0
    assert share.ask(events.BeginFetch, 8) is None
    share.submit(events.EndFetch(8))
    assert share.ask(events.BeginFetch, 8) is None
    share.submit(events.EndFetch(7))
    assert share.ask(events.BeginFetch, 8) == 0


def test_a_record_that_was_acknowledged_within_a_batch_is_not_delivered_with_the_rest() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.acknowledge("ann", (0, 4, RELEASE, RELEASE, ACCEPT, RELEASE, RELEASE))
    share.written()

    assert share.acquire("ben", (0, 4)) == [(0, 1, 2), (3, 4, 2)]


# ---- records that fail again and again ----


def delivered(share: Share, times: int, first: int, last: int) -> None:
    for _ in range(times):
        share.acquire("ann", (first, last))
        share.close("ann")
        share.written()


def test_a_batch_that_comes_back_too_often_is_delivered_in_halves_and_quarters_and_its_records_alone() -> (
    None
):
    share = Share(config=ShareConfig(delivery_count_limit=5))
    delivered(share, 3, 0, 7)

    assert share.acquire("ann", (0, 7)) == [(0, 3, 4)]
    assert share.acquire("ann", (0, 7)) == [(4, 7, 4)]
    share.close("ann")
    share.written()
    for offset in range(8):
        assert share.acquire("ann", (0, 7), (8, 9)) == [(offset, offset, 5)]
    share.close("ann")
    share.written()
    assert (share.state.start_offset, share.records()) == (8, [])


def test_a_batch_that_comes_back_too_often_is_not_delivered_with_others() -> None:
    share = Share()
    share.acquire("ben", (0, 1))
    delivered(share, 3, 2, 5)
    share.release("ben", 0, 1)

    assert share.acquire("ann", (0, 1), (2, 5), (6, 9)) == [(0, 1, 2)]
    assert share.acquire("ann", (2, 5), (6, 9)) == [(2, 3, 4)]
    assert share.acquire("ann", (2, 5), (6, 9)) == [(4, 5, 4)]
    assert share.acquire("ann", (6, 9)) == [(6, 9, 1)]


@pytest.mark.parametrize(
    ("limit", "throttled", "last"), [(2, 2, None), (3, 2, 2), (5, 3, 4), (6, 3, 5), (10, 5, 9)]
)
def test_records_are_singled_out_from_half_of_their_limit_on(
    limit: int, throttled: int, last: int | None
) -> None:
    config = ShareConfig(delivery_count_limit=limit)

    assert (config.throttled_delivery_count, config.last_delivery_count) == (throttled, last)


# ---- records that are not delivered ----


def test_records_of_aborted_transactions_are_archived_and_never_delivered() -> None:
    share = Share()
    batches = (
        FetchedBatch(0, 4, 9, is_transactional=True),
        FetchedBatch(5, 9),
        FetchedBatch(10, 10, 9, is_transactional=True, is_abort_marker=True),
        FetchedBatch(11, 14, 9, is_transactional=True),
    )

    got = share.acquire("ann", *batches, aborted=(AbortedTransaction(0, 9),))

    assert got == [(5, 14, 1)]
    assert share.state.start_offset == 5
    assert share.records() == ["0-4 archived 1", "5-14 acquired 1 ann"]


def test_a_partition_of_aborted_records_alone_does_not_fill_up() -> None:
    """Kafka moves the start offset with the next write only, which never comes if all was aborted."""
    share = Share(config=ShareConfig(partition_max_record_locks=10))
    aborted = (AbortedTransaction(0, 9),)

    assert share.acquire("ann", FetchedBatch(0, 9, 9, is_transactional=True), aborted=aborted) == []
    assert share.next_offset() == 10


def test_released_records_that_compaction_took_are_archived() -> None:
    share = Share()
    share.acquire("ann", (0, 4), (5, 9), batch_size=1)
    share.release("ann", 0, 4)

    assert share.acquire("ben", (5, 9), (10, 14), fetch_offset=0) == [(10, 14, 1)]
    assert share.state.start_offset == 5


def test_a_record_batch_that_begins_before_the_start_offset_is_delivered_from_there() -> None:
    share = Share(3)

    assert share.acquire("ann", (0, 9)) == [(3, 9, 1)]


def test_batches_below_the_start_offset_give_nothing() -> None:
    share = Share(10)

    assert share.acquire("ann", (0, 9), fetch_offset=0) == []
    assert share.acquire("ann", (0, 19), max_records=0) == []
