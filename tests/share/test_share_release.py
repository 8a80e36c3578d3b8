"""How a member loses its records: its share session ends, or its locks time out."""

from __future__ import annotations

from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import OK, Fence, WakeFetches
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import WrittenBatch
from tests.support.share_partition import LOCK_MS, Share


def test_a_lock_times_out_and_the_records_are_available_at_once() -> None:
    share = Share()
    share.acquire("ann", (0, 4))

    share.pass_ms(LOCK_MS - 1)
    assert share.records() == ["0-4 acquired 1 ann"]
    share.pass_ms(1)
    assert share.records() == ["0-4 available 1"]
    assert share.started == [WakeFetches()]
    assert [write.batches for write in share.writes] == [(WrittenBatch(0, 4, Delivery.AVAILABLE, 1),)]
    assert share.acquire("ben", (0, 4)) == [(0, 4, 2)]


def test_a_lock_that_timed_out_is_lost_whether_or_not_it_can_be_written() -> None:
    share = Share(config=ShareConfig(delivery_count_limit=2))
    for _ in range(2):
        share.acquire("ann", (0, 4))
        share.pass_ms(LOCK_MS)
        share.failed()

    assert (share.state.start_offset, share.records()) == (5, [])


def test_one_timer_serves_all_locks() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.pass_ms(10_000)
    share.acquire("ben", (5, 9))

    assert share.timer == LOCK_MS
    share.pass_ms(20_000)
    assert share.timer == LOCK_MS + 10_000
    assert share.records() == ["0-4 available 1", "5-9 acquired 1 ben"]
    share.pass_ms(10_000)
    assert share.timer is None


def test_the_duration_of_locks_may_change_while_some_are_held() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.config = ShareConfig(record_lock_duration_ms=1_000)
    share.acquire("ben", (5, 9))

    share.pass_ms(1_000)

    assert share.records() == ["0-4 acquired 1 ann", "5-9 available 1"]


def test_a_closed_session_gives_back_what_it_holds_and_nothing_of_others() -> None:
    share = Share()
    share.acquire("ann", (0, 9))
    share.acquire("ben", (10, 14))
    share.release("ann", 3, 4)
    share.acquire("ben", (0, 9), fetch_offset=3)

    assert share.close("ann") is None
    share.written()
    assert share.last_answer == OK
    assert share.records() == [
        "0-2 available 1",
        "3-4 acquired 2 ben",
        "5-9 available 1",
        "10-14 acquired 1 ben",
    ]
    assert share.close("cat") == OK


def test_a_closed_session_whose_write_fails_keeps_its_records_until_their_lock_ends() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.close("ann")
    share.failed()

    assert share.records() == ["0-4 acquired 1 ann"]
    share.pass_ms(LOCK_MS)
    assert share.records() == ["0-4 available 1"]


def test_the_end_of_a_session_counts_as_a_delivery() -> None:
    """As in Kafka 4.3; earlier releases took the delivery back."""
    share = Share(config=ShareConfig(delivery_count_limit=2))
    for _ in range(2):
        share.acquire("ann", (0, 0))
        share.close("ann")
        share.written()

    assert (share.state.start_offset, share.records()) == (1, [])


def test_records_that_left_the_log_while_they_were_held_are_archived() -> None:
    for is_closed in (True, False):
        share = Share()
        share.acquire("ann", (0, 9))
        share.cut_log(4)
        assert share.records() == ["0-9 acquired 1 ann"]

        if is_closed:
            share.close("ann")
        else:
            share.pass_ms(LOCK_MS)
        assert share.writes[0].batches == (
            WrittenBatch(0, 3, Delivery.ARCHIVED, 1),
            WrittenBatch(4, 9, Delivery.AVAILABLE, 1),
        )
        share.written()

        assert share.records() == ["0-3 archived 1", "4-9 available 1"]
        assert share.state.delivery_complete_count == 0


def test_the_locks_of_a_leader_that_is_fenced_are_over_and_nothing_is_written_of_them() -> None:
    share = Share()
    share.acquire("ann", (0, 4))
    share.submit(Fence())

    share.pass_ms(LOCK_MS)

    assert (share.writes, share.timer) == ([], None)
    assert share.records() == ["0-4 acquired 1 ann"]
