"""Which log is cleaned next, and how far."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.dirty import (
    CleanableSegment,
    Dirt,
    LogFacts,
    SegmentSize,
    dirt,
    filthiest,
    groups,
)

NOW = 1_000_000


def segment(
    base_offset: int, size: int = 100, oldest: int = NOW - 50_000, newest: int = -1
) -> CleanableSegment:
    newest = max(oldest, newest)
    return CleanableSegment(base_offset, size, lambda: newest, lambda: oldest)


def facts(*segments: CleanableSegment, cleaned: int | None = None, **details: Any) -> LogFacts:
    """A log of 100 offsets a segment, all of it stable."""
    end = segments[-1].base_offset + 100
    stable = details.pop("stable", end)
    start = details.pop("start", segments[0].base_offset)
    return LogFacts(segments, LogConfig(**details), start, end, stable, cleaned)


FOUR = (segment(0), segment(100), segment(200), segment(300))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (facts(*FOUR), Dirt(0, 300, 0, 300, False)),
        (facts(*FOUR, cleaned=200), Dirt(200, 300, 200, 100, False)),
        # A full key map ended the last round inside a segment, which counts as clean and as dirty.
        (facts(*FOUR, cleaned=150), Dirt(150, 300, 200, 200, False)),
        (facts(*FOUR, cleaned=300), Dirt(300, 300, 300, 0, False)),
        # Nothing past the last stable offset: an open transaction is not decided.
        (facts(*FOUR, stable=250), Dirt(0, 200, 0, 200, False)),
        (facts(*FOUR, stable=0), Dirt(0, 0, 0, 0, False)),
        # A checkpoint outside the log counts as none.
        (facts(*FOUR, cleaned=500), Dirt(0, 300, 0, 300, False)),
        (facts(*FOUR, cleaned=50, start=100), Dirt(100, 300, 100, 200, False)),
        (facts(segment(0)), Dirt(0, 0, 0, 0, False)),
    ],
)
def test_what_is_dirty_ends_at_the_last_clean_offset_and_at_whole_stable_closed_segments(
    log: LogFacts, expected: Dirt
) -> None:
    assert dirt(log, NOW) == expected


def test_segments_with_young_records_wait_for_min_compaction_lag() -> None:
    segments = (segment(0), segment(100, newest=NOW - 999), segment(200), segment(300))
    assert dirt(facts(*segments, min_compaction_lag_ms=1000), NOW).first_uncleanable_offset == 100
    assert dirt(facts(*segments, min_compaction_lag_ms=1000), NOW + 1).first_uncleanable_offset == 300


def test_a_log_is_overdue_when_its_oldest_dirty_record_is_older_than_max_compaction_lag() -> None:
    segments = (segment(0, oldest=NOW - 9000), segment(100, oldest=NOW - 5000), segment(200))
    assert dirt(facts(*segments, max_compaction_lag_ms=5000), NOW).is_overdue
    assert not dirt(facts(*segments, max_compaction_lag_ms=9000), NOW).is_overdue
    assert not dirt(facts(*segments, cleaned=100, max_compaction_lag_ms=5000), NOW).is_overdue
    assert dirt(facts(*segments, cleaned=100, max_compaction_lag_ms=4999), NOW).is_overdue


def test_the_filthiest_log_above_its_own_ratio_is_cleaned_first() -> None:
    half, most = Dirt(0, 9, 100, 100, False), Dirt(0, 9, 10, 90, False)
    assert filthiest([("half", half, 0.4), ("most", most, 0.5)]) == ("most", most)
    assert filthiest([("half", half, 0.4), ("most", most, 0.9)]) == ("half", half)
    assert filthiest([("half", half, 0.5), ("most", most, 0.9)]) is None
    overdue = half._replace(is_overdue=True)
    assert filthiest([("half", overdue, 0.5)]) == ("half", overdue)
    assert filthiest([("half", overdue._replace(cleanable_bytes=0), 0.5)]) is None
    assert filthiest([("empty", Dirt(0, 0, 0, 0, False), 0.0)]) is None


def size(base_offset: int, log_bytes: int, index: int = 8, times: int = 12, end: int = -1) -> SegmentSize:
    return SegmentSize(base_offset, base_offset + 100 if end < 0 else end, log_bytes, index, times)


def bases(segments: list[SegmentSize], log_bytes: int = 100, index_bytes: int = 100) -> list[list[int]]:
    return [[one.base_offset for one in group] for group in groups(segments, log_bytes, index_bytes)]


def test_neighbours_are_written_into_one_segment_as_long_as_log_and_indexes_fit() -> None:
    assert bases([size(0, 40), size(100, 60), size(200, 1)]) == [[0, 100], [200]]
    assert bases([size(0, 40), size(100, 61), size(200, 1)]) == [[0], [100, 200]]
    assert bases([size(0, 1, index=60), size(100, 1, index=41)]) == [[0], [100]]
    assert bases([size(0, 1, times=60), size(100, 1, times=41)]) == [[0], [100]]
    assert bases([]) == []


def test_offsets_of_a_group_stay_within_what_an_index_can_hold() -> None:
    far = 2**31
    assert bases([size(0, 1), size(100, 1, end=far)]) == [[0, 100]]
    assert bases([size(0, 1), size(100, 1, end=far + 1)]) == [[0], [100]]
    assert bases([size(0, 1), size(100, 0, end=far + 1)]) == [[0, 100]]
