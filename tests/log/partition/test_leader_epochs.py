"""Where leader epochs begin and end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.disk.checkpoints import (
    EpochEntry,
    decode_epochs,
    encode_epochs,
)
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(*entry) for entry in entries])


def test_an_epoch_ends_where_the_next_known_one_starts() -> None:
    cache = epochs((2, 10), (4, 20), (7, 30))

    assert cache.end_offset_for(2, 99) == (2, 20)
    assert cache.end_offset_for(3, 99) == (2, 20)
    assert cache.end_offset_for(4, 99) == (4, 30)
    assert cache.end_offset_for(7, 99) == (7, 99)


def test_epochs_outside_of_what_is_known() -> None:
    cache = epochs((2, 10), (4, 20))

    assert cache.end_offset_for(1, 99) == (1, 10)
    assert cache.end_offset_for(5, 99) == (-1, -1)
    assert cache.end_offset_for(-1, 99) == (-1, -1)
    assert epochs().end_offset_for(0, 99) == (-1, -1)


def test_the_epoch_of_an_offset() -> None:
    cache = epochs((2, 10), (4, 20))
    assert [cache.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 500)] == [-1, 2, 2, 4, 4]


def test_assigning_the_latest_epoch_again_changes_nothing() -> None:
    cache = epochs((2, 10))
    assert cache.assign(2, 15) is False
    assert cache.entries == ((2, 10),)


def test_an_assignment_removes_what_contradicts_it() -> None:
    cache = epochs((2, 10), (4, 20), (7, 30))
    assert cache.assign(5, 25) is True
    assert list(cache.entries) == [(2, 10), (4, 20), (5, 25)]
    cache.assign(6, 15)
    assert cache.entries == ((2, 10), (6, 15))


def test_negative_epochs_are_not_noted() -> None:
    assert epochs().assign(-1, 0) is False


def test_truncation_from_the_end_and_from_the_start() -> None:
    cache = epochs((2, 10), (4, 20), (7, 30))

    assert cache.truncate_from_end(30) is True
    assert cache.truncate_from_end(30) is False
    assert cache.truncate_from_start(15) is True
    assert list(cache.entries) == [(2, 15), (4, 20)]
    assert cache.truncate_from_start(15) is False
    assert cache.truncate_from_start(50) is True
    assert cache.entries == ((4, 50),)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=12))
def test_the_cache_always_ascends_in_both_columns(assignments: list[tuple[int, int]]) -> None:
    cache = LeaderEpochs()
    for epoch, start_offset in assignments:
        cache.assign(epoch, start_offset)

    assert list(cache.entries) == sorted(set(cache.entries))
    assert [e.start_offset for e in cache.entries] == sorted({e.start_offset for e in cache.entries})
    assert decode_epochs(encode_epochs(cache.entries)) == list(cache.entries)
