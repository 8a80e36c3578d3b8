"""The sparse indexes as values: lookups, bytes, and what is refused as no index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.segment.index import InvalidIndexError, OffsetIndex, TimeIndex, last_time_entry

BASE = 1000


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex(BASE)
    for offset, position in entries:
        index.append(offset, position)
    return index


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    index = TimeIndex(BASE)
    for timestamp, offset in entries:
        index.maybe_append(timestamp, offset)
    return index


def test_an_offset_entry_has_the_bytes_that_apache_kafka_wrote() -> None:
    index = OffsetIndex(0)
    index.append(0x60D, 0x4F8FF)
    assert index.to_bytes() == bytes.fromhex("0000060d 0004f8ff")


def test_a_time_entry_has_the_bytes_that_apache_kafka_wrote() -> None:
    index = TimeIndex(0)
    index.maybe_append(0x1A1FB4378C2, 0x65)
    assert index.to_bytes() == bytes.fromhex("000001a1fb4378c2 00000065")
    assert last_time_entry(index.to_bytes(), 0) == (0x1A1FB4378C2, 0x65)


def test_lookups_return_the_entry_at_or_before() -> None:
    index = offset_index((1004, 100), (1009, 200), (1014, 300))

    assert [index.position_before(offset) for offset in (1000, 1003, 1004, 1008, 1009, 9999)] == [
        0,
        0,
        100,
        100,
        200,
        300,
    ]
    assert [index.last_start_at_or_before(position) for position in (0, 99, 100, 250, 999)] == [
        0,
        0,
        100,
        200,
        300,
    ]


def test_a_time_lookup_returns_the_entry_before_the_first_record_that_is_late_enough() -> None:
    index = time_index((50, 1004), (60, 1009))

    assert [index.entry_before(timestamp) for timestamp in (10, 50, 51, 60, 61)] == [
        None,
        None,
        (50, 1004),
        (50, 1004),
        (60, 1009),
    ]


def test_a_timestamp_that_is_no_news_is_not_written() -> None:
    index = time_index((50, 1004), (50, 1005), (40, 1006), (-1, 1007), (51, 1008))
    assert list(index) == [(50, 1004), (51, 1008)]


def test_truncation_forgets_entries_at_or_past_the_offset() -> None:
    index, times = offset_index((1004, 100), (1009, 200)), time_index((50, 1004), (60, 1009))
    for part in (index, times):
        part.truncate_to(1009)
    assert (list(index), list(times)) == ([(1004, 100)], [(50, 1004)])


@given(
    st.lists(
        st.tuples(st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 2)), max_size=20, unique_by=lambda e: e[0]
    )
)
def test_offset_entries_survive_their_file(entries: list[tuple[int, int]]) -> None:
    offsets = sorted(offset for offset, _ in entries)
    positions = sorted({position for _, position in entries})
    index = OffsetIndex(BASE)
    for offset, position in zip(offsets, positions, strict=False):
        index.append(BASE + offset, position)

    assert list(OffsetIndex.from_bytes(index.to_bytes(), BASE, 2**31)) == list(index)
    assert index.to_bytes(1) == index.to_bytes()[8:]


@given(st.lists(st.tuples(st.integers(1, 2**62), st.integers(0, 2**31 - 1)), max_size=20))
def test_time_entries_survive_their_file(entries: list[tuple[int, int]]) -> None:
    index = TimeIndex(BASE)
    for timestamp, offset in zip(sorted(t for t, _ in entries), sorted(o for _, o in entries), strict=True):
        index.maybe_append(timestamp, BASE + offset)

    assert list(TimeIndex.from_bytes(index.to_bytes(), BASE)) == list(index)


def test_the_zeros_of_a_preallocated_file_are_cut_off() -> None:
    index, times = offset_index((1004, 100)), time_index((50, 1004))

    assert list(OffsetIndex.from_bytes(index.to_bytes() + bytes(80), BASE, 500)) == [(1004, 100)]
    assert list(TimeIndex.from_bytes(times.to_bytes() + bytes(120), BASE)) == [(50, 1004)]


@pytest.mark.parametrize(
    "entries, log_bytes",
    [
        ("00000005 00000064 00000004 000000c8", 500),
        ("00000004 000000c8 00000005 00000064", 500),
        ("00000004 00000064 00000004 000000c8", 500),
        ("00000004 00000064", 100),
        ("fffffff0 00000064", 500),
    ],
    ids=["offsets fall", "positions fall", "an offset twice", "past the log", "before the segment"],
)
def test_what_cannot_be_an_offset_index_is_refused(entries: str, log_bytes: int) -> None:
    with pytest.raises(InvalidIndexError):
        OffsetIndex.from_bytes(bytes.fromhex(entries), BASE, log_bytes)


def test_what_cannot_be_a_time_index_is_refused() -> None:
    fall = time_index((60, 1004)).to_bytes() + time_index((50, 1009)).to_bytes()
    with pytest.raises(InvalidIndexError):
        TimeIndex.from_bytes(fall, BASE)
