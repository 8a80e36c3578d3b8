"""Who joins the in-sync replicas, and who has to leave."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.events import (
    BrokersChanged,
    IsrChangeAnswered,
    IsrProposal,
    TimePassed,
)
from pykafka_broker.replication.core.state import Isr, LogOffsets
from pykafka_broker.replication.core.transitions import ReplicationSettings, leadership_of, transition
from tests.replication.leading import LAG_MS, LEADER, NOW_MS, after, fetched, leading, registration


def test_a_follower_with_everything_that_is_committed_joins() -> None:
    step = transition(leading(1, 2), fetched(3, 100)._replace(broker_epoch=33, registered_epoch=33))

    assert step.effects == (Start(IsrProposal(5, 7, ((1, -1), (2, -1), (3, 33)))),)
    assert step.state.isr == Isr((1, 2), proposed=(1, 2, 3))
    assert step.state.isr.maximal == {1, 2, 3}


def test_it_has_to_have_all_that_is_committed() -> None:
    new = leading(1, 2, log_end_offset=50)
    assert transition(new, fetched(3, 99, high_watermark=100)).effects == ()


def test_it_need_not_have_what_is_not_committed() -> None:
    assert transition(leading(1, 2), fetched(3, 100, end=500)).effects


def test_it_has_to_have_all_that_was_written_before_this_epoch() -> None:
    """What an earlier leader had committed may be above the high watermark that this one knows."""
    new = leading(1, 2, log_end_offset=100)
    assert transition(new, fetched(3, 99, high_watermark=90)).effects == ()
    assert transition(new, fetched(3, 100, high_watermark=90)).effects


@pytest.mark.parametrize(
    "told", [{"is_active": False}, {"broker_epoch": 8, "registered_epoch": 9}], ids=["fenced", "earlier life"]
)
def test_a_broker_that_is_fenced_or_has_registered_again_does_not_join(told: dict[str, Any]) -> None:
    assert transition(leading(1, 2), fetched(3, 100)._replace(**told)).effects == ()


def test_what_a_broker_told_in_an_earlier_life_does_not_count() -> None:
    """It may have lost since what it had then (KIP-903)."""
    state = leading(1, 2)
    late = fetched(2, 100)._replace(broker_epoch=8, registered_epoch=9)
    assert transition(state, late) == Step(state)


def test_one_change_is_asked_for_at_a_time() -> None:
    asked = after(leading(1), fetched(2, 100))
    step = transition(asked, fetched(3, 100))
    assert (step.state.isr, step.effects) == (Isr((1,), proposed=(1, 2)), ())


def test_a_change_that_is_refused_can_be_asked_for_again() -> None:
    asked = after(leading(1), fetched(2, 100))
    change = IsrProposal(5, 7, ((1, -1), (2, -1)))
    refused = transition(asked, IsrChangeAnswered(change, ErrorCode.INELIGIBLE_REPLICA)).state
    assert refused.isr == Isr((1,))
    assert transition(refused, fetched(2, 100)).effects


def test_a_refusal_of_an_earlier_change_says_nothing_of_this_one() -> None:
    asked = after(leading(1), fetched(2, 100))
    earlier = IsrProposal(5, 6, ((1, -1), (2, -1)))
    another = IsrProposal(5, 7, ((1, -1), (3, -1)))
    for change in (earlier, another):
        assert transition(asked, IsrChangeAnswered(change, ErrorCode.INELIGIBLE_REPLICA)) == Step(asked)


def test_the_metadata_brings_the_change_and_positions_are_kept() -> None:
    asked = after(leading(1), fetched(2, 100))
    changed = leadership_of(
        asked, LEADER, registration(1, 2, partition_epoch=8), ReplicationSettings(1, LAG_MS), 150, NOW_MS
    )
    assert changed.isr == Isr((1, 2))
    assert changed.followers == asked.followers
    assert changed.epoch_start_offset == 100


def test_metadata_of_other_partitions_leaves_a_change_under_way() -> None:
    asked = after(leading(1), fetched(2, 100))
    same = leadership_of(asked, LEADER, registration(1), ReplicationSettings(1, LAG_MS), 150, NOW_MS)
    assert same == asked


def test_a_follower_that_does_not_fetch_leaves_after_the_lag_time() -> None:
    state = leading(1, 2, 3)
    offsets = LogOffsets(100, 100)
    assert transition(state, TimePassed(NOW_MS + LAG_MS, offsets)) == Step(state)

    step = transition(state, TimePassed(NOW_MS + LAG_MS + 1, offsets))

    assert step.effects == (Start(IsrProposal(5, 7, ((1, -1),))),)
    assert step.state.isr.maximal == {1, 2, 3}, "until the controller has agreed they count"


def test_a_follower_with_everything_stays_however_long_nothing_is_written() -> None:
    state = after(leading(1, 2), fetched(2, 100))
    assert transition(state, TimePassed(NOW_MS + 10 * LAG_MS, LogOffsets(100, 100))).effects == ()


def test_a_follower_that_fetches_all_the_time_and_never_catches_up_leaves() -> None:
    state = leading(1, 2)
    for second in range(40):
        state = after(state, fetched(2, 100 + second, at_ms=NOW_MS + second * 1_000, end=1_000))
    step = transition(state, TimePassed(NOW_MS + 39_000, LogOffsets(100, 1_000)))
    assert step.effects == (Start(IsrProposal(5, 7, ((1, -1),))),)


def test_a_follower_that_has_what_there_was_at_its_last_fetch_keeps_up() -> None:
    """The leader's log grows faster than one fetch can carry; one round later the follower has it."""
    state = leading(1, 2)
    for second in range(40):
        end = 100 + (second + 1) * 10
        state = after(state, fetched(2, end - 10, at_ms=NOW_MS + second * 1_000, end=end))
    assert state.followers[2].caught_up_ms == NOW_MS + 38_000
    assert transition(state, TimePassed(NOW_MS + 39_000, LogOffsets(100, 500))).effects == ()


def test_a_replica_that_is_not_assigned_any_more_is_forgotten() -> None:
    followed = after(leading(1, 2, 3), fetched(2, 100), fetched(3, 100))
    moved = registration(1, 2, replicas=(1, 2), partition_epoch=8)
    left = leadership_of(followed, LEADER, moved, ReplicationSettings(1, LAG_MS), 100, NOW_MS)
    assert left.followers == {2: followed.followers[2]}


def test_a_follower_that_is_registered_anew_joins_once_the_leader_knows_that_registration() -> None:
    ahead = fetched(2, 100)._replace(broker_epoch=9, registered_epoch=8)
    waiting = transition(leading(1), ahead)
    assert (waiting.state.isr, waiting.effects) == (Isr((1,)), ())
    known = transition(waiting.state, BrokersChanged({2: 9})).state
    assert known.followers[2].is_eligible
    assert transition(known, ahead._replace(registered_epoch=9)).effects


def test_a_follower_whose_broker_is_fenced_may_not_join_until_it_is_unfenced_in_the_same_epoch() -> None:
    followed = after(leading(1, 2), fetched(3, 100)._replace(broker_epoch=9, registered_epoch=9))
    followed = followed._replace(isr=Isr((1, 2)))
    fenced = transition(followed, BrokersChanged({2: 4})).state
    assert not fenced.followers[3].is_eligible
    assert not fenced.followers[2].is_eligible, "it has not fetched"
    assert transition(fenced, BrokersChanged({3: 9})).state.followers[3].is_eligible
    assert not transition(fenced, BrokersChanged({3: 10})).state.followers[3].is_eligible
