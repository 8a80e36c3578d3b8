"""How the start offset moves: behind records that are done with, or with the start of the log."""

from __future__ import annotations

from pykafka_broker.share.core.config import ShareConfig
from tests.support.share_partition import Share


def test_the_start_offset_waits_for_the_first_record_that_is_not_done_with() -> None:
    share = Share()
    for first in (0, 5, 10):
        share.acquire("ann", (first, first + 4))

    share.accept("ann", 5, 9)
    assert (share.state.start_offset, share.state.delivery_complete_count) == (0, 5)
    share.accept("ann", 0, 2)
    assert (share.state.start_offset, share.state.delivery_complete_count) == (3, 5)
    share.accept("ann", 3, 4)
    assert (share.state.start_offset, share.state.delivery_complete_count) == (10, 0)
    assert share.records() == ["10-14 acquired 1 ann"]


def test_a_write_on_its_way_holds_the_start_offset_back() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.acquire("ann", (5, 9))
    for first in (0, 5):
        share.acknowledge("ann", (first, first + 4, 1))
    earlier, later = share.writes

    share.writes = [later]
    share.written()
    assert share.state.start_offset == 0
    share.writes = [earlier]
    share.written()
    assert share.state.start_offset == 10


def test_offsets_that_compaction_took_between_two_batches_are_passed() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.acquire("ann", (20, 24))

    share.accept("ann", 0, 4)

    assert share.state.start_offset == 20


def test_records_that_left_the_log_are_archived_and_those_that_remain_are_delivered() -> None:
    share = Share()
    share.acquire("ann", (0, 9))
    share.release("ann", 0, 9)

    share.cut_log(4)

    assert share.state.start_offset == 4
    assert share.records() == ["0-3 archived 1", "4-9 available 1"]
    assert share.next_offset() == 4
    assert share.acquire("ben", (0, 9)) == [(4, 9, 2)]


def test_a_log_that_was_cut_behind_everything_begins_anew_there() -> None:
    share = Share()
    share.acquire("ann", (0, 9))

    share.cut_log(50)

    assert (share.state.start_offset, share.state.end_offset, share.next_offset()) == (50, 50, 50)
    assert share.acquire("ben", (50, 54)) == [(50, 54, 1)]
    share.close("ann")
    share.written()
    share.accept("ben", 50, 54)
    assert (share.state.start_offset, share.records()) == (55, [])


def test_the_start_offset_does_not_fall_behind_the_log_when_what_left_it_is_forgotten() -> None:
    share = Share()
    share.acquire("ann", (0, 9))
    share.cut_log(50)
    share.close("ann")

    share.written()

    assert (share.state.start_offset, share.state.end_offset, share.records()) == (50, 50, [])


def test_a_log_start_that_is_known_already_changes_nothing() -> None:
    share = Share(10)
    before = share.state

    share.cut_log(10)
    share.cut_log(3)

    assert share.state == before


def test_a_failed_write_does_not_bring_back_what_left_the_log() -> None:
    share = Share(config=ShareConfig(record_lock_duration_ms=1_000))
    share.acquire("ann", (0, 9))
    share.acknowledge("ann", (0, 9, 1))
    share.cut_log(5)
    share.pass_ms(1_000)

    share.failed()

    assert share.records() == ["0-4 archived 1", "5-9 available 1"]
    assert share.next_offset() == 5
