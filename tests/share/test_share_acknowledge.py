"""Accept, release, reject, gap and renew, and what a member is told that has no right (KIP-932, KIP-1222)."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core import acknowledge
from pykafka_broker.share.core import batch as batches
from pykafka_broker.share.core.batch import Run
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import OK, Result, WakeFetches
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import StateWrite, WrittenBatch
from tests.support.share_partition import ACCEPT, GAP, LOCK_MS, REJECT, RELEASE, RENEW, Share


def acquired(*offsets: tuple[int, int]) -> Share:
    share = Share()
    for batch in offsets:
        share.acquire("ann", batch)
    return share


def test_an_accepted_batch_is_answered_once_it_is_written_and_the_start_offset_moves_behind_it() -> None:
    share = acquired((0, 4), (5, 9))

    assert share.acknowledge("ann", (0, 4, ACCEPT)) is None
    assert share.writes == [StateWrite(0, 1, 0, 5, (WrittenBatch(0, 4, Delivery.ACKNOWLEDGED, 1),))]
    assert share.records() == ["0-4 acknowledged? 1", "5-9 acquired 1 ann"]
    share.written()
    assert share.last_answer == OK
    assert (share.state.start_offset, share.records()) == (5, ["5-9 acquired 1 ann"])
    assert share.started == [WakeFetches()]


def test_each_record_of_a_batch_may_have_a_type_of_its_own() -> None:
    share = acquired((0, 5))

    share.acknowledge("ann", (0, 5, ACCEPT, ACCEPT, RELEASE, REJECT, GAP, ACCEPT))
    share.written()

    assert share.records() == [
        "0-1 acknowledged 1",
        "2-2 available 1",
        "3-4 archived 1",
        "5-5 acknowledged 1",
    ]
    assert (share.state.start_offset, share.state.delivery_complete_count) == (2, 3)


def test_the_work_for_a_batch_grows_with_its_records_however_they_are_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It grew with their square: for 2,000 records the broker did nothing else for several seconds.
    made = 0

    def counted(*args: Any) -> Run:
        nonlocal made
        made += 1
        return Run(*args)

    def runs_made(count: int) -> int:
        nonlocal made
        made = 0
        share = acquired((0, count - 1))
        share.acknowledge("ann", (0, count - 1, *(RELEASE, REJECT) * (count // 2)))
        share.written()
        share.acquire("bob", (0, count - 1))
        assert len(share.records()) == count
        return made

    monkeypatch.setattr(batches, "Run", counted)
    assert runs_made(400) < 5 * runs_made(100)


def test_one_acknowledgement_may_span_several_batches_and_the_gaps_between_them() -> None:
    share = acquired((0, 4), (10, 14))

    share.accept("ann", 0, 14)

    assert (share.state.start_offset, share.state.end_offset, share.records()) == (15, 15, [])


def test_records_at_their_delivery_limit_are_archived_when_they_are_released() -> None:
    share = Share(config=ShareConfig(delivery_count_limit=2))
    share.acquire("ann", (0, 0))
    share.release("ann", 0, 0)
    share.acquire("ann", (0, 0))

    share.release("ann", 0, 0)

    assert (share.state.start_offset, share.records()) == (1, [])


def test_a_write_that_fails_gives_the_records_back_to_the_member() -> None:
    share = acquired((0, 4))
    share.acknowledge("ann", (0, 4, ACCEPT))

    share.failed()

    assert share.last_answer == Result(ErrorCode.COORDINATOR_NOT_AVAILABLE, "sorry")
    assert share.records() == ["0-4 acquired 1 ann"]
    assert share.state.delivery_complete_count == 0
    share.accept("ann", 0, 4)
    assert share.state.start_offset == 5


@pytest.mark.parametrize(
    ("told_here", "told_there"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_STATE_EPOCH),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_is_told_of_the_coordinators_errors_in_its_own_words(
    told_here: ErrorCode, told_there: ErrorCode
) -> None:
    share = acquired((0, 4))
    share.acknowledge("ann", (0, 4, ACCEPT))

    share.failed(told_there)

    assert share.last_answer.error is told_here


def test_a_lock_that_ends_while_a_write_is_on_its_way_counts_only_if_the_write_fails() -> None:
    for outcome, records in (("written", []), ("failed", ["0-4 available 1"])):
        share = acquired((0, 4))
        share.acknowledge("ann", (0, 4, ACCEPT))
        share.pass_ms(LOCK_MS)
        assert share.records() == ["0-4 acknowledged? 1"]

        getattr(share, outcome)()

        assert share.records() == records


def test_a_lock_outlives_the_timer_that_fired_while_its_write_was_on_its_way() -> None:
    share = acquired((0, 4))
    share.pass_ms(LOCK_MS - 1)
    share.acquire("ann", (5, 9))
    share.acknowledge("ann", (5, 9, ACCEPT))
    share.pass_ms(1)
    share.failed()

    share.pass_ms(LOCK_MS)

    assert share.records() == ["0-4 available 1", "5-9 available 1"]


def test_renewing_a_batch_or_some_of_it_writes_nothing_and_keeps_it_for_another_duration() -> None:
    share = acquired((0, 4), (5, 9))
    share.pass_ms(20_000)

    assert share.acknowledge("ann", (0, 4, RENEW), (6, 7, RENEW)) == OK
    assert share.writes == []
    share.pass_ms(10_000)
    assert share.records() == [
        "0-4 acquired 1 ann",
        "5-5 available 1",
        "6-7 acquired 1 ann",
        "8-9 available 1",
    ]
    share.pass_ms(20_000)
    assert share.records() == ["0-4 available 1", "5-9 available 1"]


def test_a_group_may_forbid_to_renew() -> None:
    share = acquired((0, 4))
    share.config = ShareConfig(renew_acknowledge_enable=False)

    assert share.acknowledge("ann", (0, 4, RENEW)) == acknowledge.RENEW_DISABLED


def test_what_was_deleted_meanwhile_is_acknowledged_without_a_word() -> None:
    share = acquired((0, 4), (5, 9))
    share.cut_log(7)

    assert share.acknowledge("ann", (0, 4, ACCEPT)) == OK
    assert share.acknowledge("ann", (5, 9, ACCEPT)) is None
    assert share.writes[0].batches == (WrittenBatch(7, 9, Delivery.ACKNOWLEDGED, 1),)
    assert share.writes[0].start_offset == 7


INVALID_TYPE = Result(ErrorCode.INVALID_REQUEST, "Invalid acknowledge type: [5]")


@pytest.mark.parametrize(
    ("member", "said", "answer"),
    [
        ("ben", (10, 14, ACCEPT), acknowledge.BATCH_OF_OTHER),
        ("ben", (10, 12, ACCEPT), acknowledge.BATCH_OF_OTHER),
        ("ben", (25, 25, ACCEPT), acknowledge.OFFSET_OF_OTHER),
        ("ann", (15, 19, ACCEPT), acknowledge.BATCH_NOT_ACQUIRED),
        ("ann", (20, 24, ACCEPT), acknowledge.OFFSET_NOT_ACQUIRED),
        ("ann", (10, 24, ACCEPT), acknowledge.BATCH_NOT_ACQUIRED),
        ("ann", (40, 41, ACCEPT), acknowledge.FIRST_PAST_END),
        ("ann", (25, 41, ACCEPT), acknowledge.LAST_PAST_END),
        ("ann", (10, 14, 5), INVALID_TYPE),
    ],
)
def test_who_may_not_acknowledge_changes_nothing(member: str, said: tuple[Any, ...], answer: Result) -> None:
    share = Share(10)
    for batch in ((10, 14), (15, 19), (20, 29)):
        share.acquire("ann", batch)
    share.release("ann", 15, 19)
    share.release("ann", 20, 22)
    before = share.records()

    assert share.acknowledge(member, said) == answer
    assert share.writes == []
    assert share.records() == before


def test_what_was_never_in_flight_is_not_found() -> None:
    share = Share(10)
    share.acquire("ann", (10, 14))

    assert share.acknowledge("ann", (3, 9, ACCEPT)) == OK
    assert Share(10).acknowledge("ann", (10, 12, ACCEPT)) == acknowledge.NOT_FOUND
    assert Share(10).acknowledge("ann", (3, 12, ACCEPT)) == acknowledge.NOT_FOUND


@pytest.mark.parametrize("said", [(0, 4), (0, 4, ACCEPT, ACCEPT), (4, 0, ACCEPT), (0, -1)])
def test_types_that_do_not_fit_the_offsets_are_refused(said: tuple[Any, ...]) -> None:
    answer = acquired((0, 4)).acknowledge("ann", said)

    assert answer is not None
    assert answer.error is ErrorCode.INVALID_REQUEST


def test_a_request_is_carried_out_as_a_whole_or_not_at_all() -> None:
    share = acquired((0, 4), (5, 9))
    share.release("ann", 5, 9)

    assert share.acknowledge("ann", (0, 4, ACCEPT), (5, 9, ACCEPT)) == acknowledge.BATCH_NOT_ACQUIRED
    assert share.records() == ["0-4 acquired 1 ann", "5-9 available 1"]
    assert share.state.delivery_complete_count == 0


def test_records_may_be_acknowledged_in_any_order() -> None:
    share = acquired((0, 2))

    assert share.acknowledge("ann", (2, 2, ACCEPT), (0, 0, REJECT)) is None
    share.failed()
    assert share.records() == ["0-2 acquired 1 ann"]

    assert share.acknowledge("ann", (2, 2, ACCEPT), (0, 0, REJECT)) is None
    share.written()
    assert share.records() == ["0-0 archived 1", "1-1 acquired 1 ann", "2-2 acknowledged 1"]


def test_a_second_acknowledgement_does_not_overtake_the_first() -> None:
    share = acquired((0, 4))
    share.acknowledge("ann", (0, 4, RELEASE))

    assert share.acknowledge("ann", (0, 4, ACCEPT)) == acknowledge.BATCH_NOT_ACQUIRED
    assert share.next_offset() == 5
    share.written()
    assert share.next_offset() == 0


def test_whole_batches_cost_nothing_by_record() -> None:
    """A million records are one run and one state batch, from their delivery to the end."""
    share = Share(config=ShareConfig(partition_max_record_locks=10**7))
    share.acquire("ann", (0, 10**6 - 1), max_records=10**7)
    share.acquire("ann", (10**6, 2 * 10**6 - 1), max_records=10**7)

    share.acknowledge("ann", (0, 10**6 - 2, ACCEPT))

    assert share.records() == [
        "0-999998 acknowledged? 1",
        "999999-999999 acquired 1 ann",
        "1000000-1999999 acquired 1 ann",
    ]
    assert len(share.writes[0].batches) == 1
    assert sum(len(batch.runs) for batch in share.state.batches) == 3
