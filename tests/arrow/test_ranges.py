"""Places, as a reader is told them, become offsets of every partition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange
from pykafka_broker.arrow.ranges import EARLIEST, LATEST, Ranges, chosen_partitions, plan
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_769_860_800_000
#: Partition 0 has the offsets 10 to 19, of which 15 is from noon; partition 1 has 0 to 4, all from before.
LOGS = {0: {EARLIEST: 10, LATEST: 20, NOON_MS: 15}, 1: {EARLIEST: 0, LATEST: 5, NOON_MS: -1}}


def look_up(times: Mapping[int, int]) -> Mapping[int, int]:
    return {partition: LOGS[partition][time] for partition, time in times.items()}


def planned(*, follow: bool = False, **ranges: Any) -> dict[int, OffsetRange]:
    return plan("t", Ranges(**ranges), [0, 1], look_up, follow=follow)


def test_everything_is_what_is_there_when_reading_begins() -> None:
    assert planned() == {0: (10, 20), 1: (0, 5)}


def test_a_reader_that_follows_has_no_end_unless_it_is_given_one() -> None:
    assert planned(follow=True) == {0: (10, NO_END), 1: (0, NO_END)}
    assert planned(follow=True, end={0: 100}) == {0: (10, 100), 1: (0, NO_END)}


def test_places_are_for_all_partitions_or_by_partition() -> None:
    assert planned(start={0: 12, 1: 1}, end=4) == {0: (12, 12), 1: (1, 4)}
    assert planned(start={0: "latest"}) == {0: (20, 20), 1: (0, 5)}


def test_a_time_is_the_first_record_at_or_after_it_and_the_end_where_there_is_none() -> None:
    assert planned(start=NOON) == {0: (15, 20), 1: (5, 5)}
    assert planned(end=NOON) == {0: (10, 15), 1: (0, 5)}
    assert planned(end=NOON - timedelta(microseconds=300)) == {0: (10, 15), 1: (0, 5)}


def test_a_record_that_is_found_by_its_time_may_lie_behind_the_end_for_this_reader() -> None:
    """It is of an open transaction, or came after the end was asked for."""
    logs = {0: {EARLIEST: 0, LATEST: 10, NOON_MS: 12}}

    def planned(*, follow: bool) -> dict[int, OffsetRange]:
        return plan("t", Ranges(start=NOON), [0], lambda times: {0: logs[0][times[0]]}, follow=follow)

    assert planned(follow=False) == {0: (12, 12)}
    assert planned(follow=True) == {0: (12, NO_END)}


def test_an_end_beyond_the_log_is_its_end() -> None:
    assert planned(end=1_000) == {0: (10, 20), 1: (0, 5)}


@pytest.mark.parametrize("start", [9, 21])
def test_a_start_that_the_log_does_not_have_is_refused(start: int) -> None:
    with pytest.raises(
        KafkaError, match=f"t-0 has no offset {start}: it has those from 10 up to 20"
    ) as refused:
        planned(start={0: start})
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("place", [-3, "begin", True, 1.5, datetime(1960, 1, 1, tzinfo=UTC)])
def test_what_is_no_place_is_refused(place: Any) -> None:
    with pytest.raises(ValueError):
        planned(start=place)


def test_a_reader_that_follows_ends_at_an_offset() -> None:
    with pytest.raises(ValueError, match="ends at an offset"):
        planned(follow=True, end=NOON)


def test_partitions_are_all_of_them_or_those_that_are_named() -> None:
    assert chosen_partitions("t", Ranges(), [0, 1, 2]) == [0, 1, 2]
    assert chosen_partitions("t", Ranges(partitions=[2, 0, 2]), [0, 1, 2]) == [0, 2]
    for ranges in (Ranges(partitions=[3]), Ranges(start={3: 0})):
        with pytest.raises(KafkaError, match="Topic 't' has no partition 3"):
            chosen_partitions("t", ranges, [0, 1, 2])


def test_ranges_are_values() -> None:
    assert Ranges(start=1) == Ranges(start=1)
    assert OffsetRange(1, 2) == (1, 2)
