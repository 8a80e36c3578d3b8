"""The state is read from the share coordinator when the first request comes, and what waits meanwhile."""

from __future__ import annotations

import pytest

from pykafka_broker.machine.step import Reply, Start
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core import events
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import OK, FindStartOffset, ReadPersistedState, Result
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import Persisted, StateWrite, WrittenBatch, replay
from pykafka_broker.share.core.state import Phase, SharePartition
from pykafka_broker.share.core.transitions import transition
from tests.support.share_partition import Share

AVAILABLE, ACKNOWLEDGED, ARCHIVED = Delivery.AVAILABLE, Delivery.ACKNOWLEDGED, Delivery.ARCHIVED
CONFIG = ShareConfig()


def test_the_first_request_has_the_state_read_and_others_are_told_to_come_again() -> None:
    opening = transition(SharePartition(), events.Initialize(1), CONFIG)
    assert opening.effects == (Start(ReadPersistedState()),)

    other = transition(opening.state, events.Initialize(2), CONFIG)
    [reply] = other.effects
    assert isinstance(reply, Reply) and isinstance(reply.result, Result)
    assert reply.result.error is ErrorCode.LEADER_NOT_AVAILABLE

    ready = transition(other.state, events.StateRead(ErrorCode.NONE, None, 3, 10), CONFIG)
    assert ready.effects == (Reply(1, OK),)
    assert (ready.state.phase, ready.state.state_epoch, ready.state.start_offset) == (Phase.ACTIVE, 3, 10)
    assert transition(ready.state, events.Initialize(3), CONFIG).effects == (Reply(3, OK),)


def test_a_group_that_never_read_the_partition_begins_where_its_offset_reset_says() -> None:
    opening = transition(SharePartition(), events.Initialize(1), CONFIG).state
    asking = transition(opening, events.StateRead(ErrorCode.NONE, None, 3, -1), CONFIG)
    assert asking.effects == (Start(FindStartOffset()),)

    ready = transition(asking.state, events.StartOffsetFound(ErrorCode.NONE, 42), CONFIG)

    assert ready.effects == (Reply(1, OK),)
    assert (ready.state.start_offset, ready.state.end_offset, ready.state.state_epoch) == (42, 42, 3)


def test_a_state_that_cannot_be_read_fails_the_share_partition() -> None:
    opening = transition(SharePartition(), events.Initialize(1), CONFIG).state

    failed = transition(opening, events.StateRead(ErrorCode.FENCED_STATE_EPOCH, "no"), CONFIG)
    assert failed.effects == (Reply(1, Result(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no")),)
    assert failed.state.phase is Phase.FAILED

    lost = transition(opening, events.StartOffsetFound(ErrorCode.LEADER_NOT_AVAILABLE), CONFIG)
    assert lost.effects == (Reply(1, Result(ErrorCode.LEADER_NOT_AVAILABLE)),)


@pytest.mark.parametrize(
    "batches",
    [
        (WrittenBatch(5, 9, AVAILABLE, 1),),
        (WrittenBatch(10, 14, AVAILABLE, 1), WrittenBatch(14, 19, AVAILABLE, 1)),
        (WrittenBatch(14, 13, AVAILABLE, 1),),
    ],
)
def test_a_state_that_makes_no_sense_fails_the_share_partition(batches: tuple[WrittenBatch, ...]) -> None:
    opening = transition(SharePartition(), events.Initialize(1), CONFIG).state

    failed = transition(opening, events.StateRead(ErrorCode.NONE, None, 3, 10, batches), CONFIG)

    assert failed.state.phase is Phase.FAILED
    assert failed.effects == (
        Reply(1, Result(ErrorCode.UNKNOWN_SERVER_ERROR, "Failed to initialize the share partition")),
    )


def test_a_fenced_share_partition_gives_nothing() -> None:
    share = Share()
    share.submit(events.Fence())

    assert share.next_offset() is None
    assert share.acquire("ann", (0, 4), fetch_offset=0) == []
    assert share.ask(events.Initialize).error is ErrorCode.LEADER_NOT_AVAILABLE


def test_loaded_records_go_on_where_they_were() -> None:
    share = Share(
        10,
        (
            WrittenBatch(10, 12, ACKNOWLEDGED, 1),
            WrittenBatch(13, 19, AVAILABLE, 2),
        ),
    )

    assert share.state.start_offset == 13
    assert share.acquire("ann", (10, 24)) == [(13, 19, 3), (20, 24, 1)]


def test_what_the_loaded_state_does_not_mention_is_read_again() -> None:
    """Records that were delivered before the leader moved, and were not acknowledged, were never written."""
    share = Share(
        10,
        (
            WrittenBatch(15, 19, ACKNOWLEDGED, 1),
            WrittenBatch(25, 29, ACKNOWLEDGED, 1),
        ),
    )

    assert share.next_offset() == 10
    assert share.acquire("ann", (10, 19), (20, 24), (25, 29), (30, 34)) == [
        (10, 14, 1),
        (20, 24, 1),
        (30, 34, 1),
    ]
    share.accept("ann", 10, 14)
    assert share.state.start_offset == 20


def test_a_gap_of_the_loaded_state_without_records_is_passed() -> None:
    """Kafka reads such a gap again and again."""
    share = Share(10, (WrittenBatch(15, 19, ACKNOWLEDGED, 1),))

    assert share.next_offset() == 10
    assert share.acquire("ann", (15, 19), fetch_offset=10) == []
    assert share.next_offset() == 20


def test_the_start_offset_waits_for_a_gap_to_be_read() -> None:
    share = Share(
        10,
        (
            WrittenBatch(10, 14, AVAILABLE, 1),
            WrittenBatch(20, 24, ACKNOWLEDGED, 1),
        ),
    )
    share.acquire("ann", (10, 14))
    share.accept("ann", 10, 14)

    assert share.state.start_offset == 15
    assert share.next_offset() == 15
    share.acquire("ann", (15, 19), (20, 24))
    share.accept("ann", 15, 19)
    assert share.state.start_offset == 25


def test_writes_fold_into_what_the_coordinator_knows() -> None:
    def write(start: int, *batches: WrittenBatch) -> StateWrite:
        return StateWrite(0, 1, start, 0, batches)

    one = replay(Persisted(0), write(0, WrittenBatch(0, 9, AVAILABLE, 1)))
    two = replay(one, write(0, WrittenBatch(3, 4, ACKNOWLEDGED, 2)))
    assert two.batches == (
        WrittenBatch(0, 2, AVAILABLE, 1),
        WrittenBatch(3, 4, ACKNOWLEDGED, 2),
        WrittenBatch(5, 9, AVAILABLE, 1),
    )
    three = replay(two, write(4, WrittenBatch(5, 9, ACKNOWLEDGED, 2)))
    assert three == Persisted(4, (WrittenBatch(4, 9, ACKNOWLEDGED, 2),))
    assert replay(three, write(2)) == three
