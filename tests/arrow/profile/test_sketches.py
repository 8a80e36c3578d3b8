"""What is counted in bounded memory stays within the errors that are said."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.arrow.core.profile.distinct import STANDARD_ERROR, DistinctKeys
from pykafka_broker.arrow.core.profile.frequent import NAME_BYTES, Frequent
from pykafka_broker.arrow.core.profile.murmur3 import mixed
from pykafka_broker.arrow.core.profile.sizes import SIZE_ERROR, SizeCounts

# -- distinct keys
# ----------------


def distinct(*ranges: range) -> DistinctKeys:
    """The count of the hashes of these numbers."""
    found = DistinctKeys()
    for numbers in ranges:
        found.add(mixed(np.array(numbers, np.uint64)))
    return found


@pytest.mark.parametrize("number", [0, 1, 2, 10, 100, 1_000, 20_000, 45_000, 80_000, 300_000, 2_000_000])
def test_distinct_keys_are_estimated_within_three_standard_errors(number: int) -> None:
    estimate = distinct(range(number)).estimate()
    assert abs(estimate - number) <= 3 * STANDARD_ERROR * number


def test_the_error_that_is_said_is_the_one_that_estimates_have() -> None:
    errors = [distinct(range(at, at + 50_000)).estimate() / 50_000 - 1 for at in range(0, 3_000_000, 50_000)]
    assert abs(float(np.mean(errors))) < STANDARD_ERROR / 2
    assert 0.6 * STANDARD_ERROR < float(np.std(errors)) < 1.4 * STANDARD_ERROR


def test_keys_that_come_again_or_from_another_count_are_not_counted_twice() -> None:
    apart = distinct(range(9_000))
    apart.merge(distinct(range(5_000, 20_000)))
    assert apart.estimate() == distinct(range(20_000), range(7_000)).estimate()


# -- frequent strings
# -------------------


def add(frequent: Frequent, strings: Sequence[bytes]) -> None:
    ends = np.cumsum(np.array([len(each) for each in strings], np.int64))
    at = ends - np.array([len(each) for each in strings], np.int64)
    frequent.add(np.frombuffer(b"".join(strings), np.uint8), at, ends)


def counted(batches: Iterable[Sequence[bytes]], most: int) -> Frequent:
    frequent = Frequent(most)
    for strings in batches:
        add(frequent, strings)
    return frequent


def check(frequent: Frequent, strings: Sequence[bytes], most: int) -> None:
    """What is told of these strings is right, and none that is frequent is missed."""
    exact = Counter(strings)
    told, others_at_most = frequent.most_frequent(most)
    assert len(told) <= most
    assert others_at_most <= len(strings) / (most + 1)
    for name, is_whole, occurrences, error in told:
        assert is_whole
        assert occurrences - error <= exact[name] <= occurrences
    named = {each.name for each in told}
    assert all(count <= others_at_most for name, count in exact.items() if name not in named)
    for wanted in range(len(told)):
        top, others_at_most = frequent.most_frequent(wanted)
        assert top == told[:wanted]
        missing = exact.keys() - {each.name for each in top}
        assert all(exact[name] <= others_at_most for name in missing)


skewed = st.lists(st.sampled_from([b"%d" % n for n in range(30) for _ in range(30 - n)]), max_size=60)


@given(st.lists(skewed, max_size=6), st.integers(1, 12))
def test_no_string_above_its_share_is_missed_and_every_count_is_bounded(
    batches: list[list[bytes]], most: int
) -> None:
    check(counted(batches, most), [each for strings in batches for each in strings], most)


@given(st.lists(st.lists(skewed, max_size=4), min_size=1, max_size=4), st.integers(1, 12))
def test_counts_that_are_merged_keep_their_bounds(parts: list[list[list[bytes]]], most: int) -> None:
    merged = Frequent(most)
    for part in parts:
        merged.merge(counted(part, most))
    check(merged, [each for part in parts for strings in part for each in strings], most)


def test_with_a_counter_for_each_string_counts_are_exact() -> None:
    dice = random.Random(5)
    strings = [b"user-%d" % int(dice.paretovariate(0.8)) for _ in range(5_000)]
    exact = Counter(strings)
    told, others_at_most = counted([strings[:2_000], strings[2_000:]], len(exact)).most_frequent(len(exact))
    assert {name: occurrences for name, _, occurrences, error in told if not error} == dict(exact)
    assert others_at_most == 0


def test_of_a_long_string_the_first_bytes_are_told() -> None:
    long = b"k" * NAME_BYTES
    told, _ = counted([[long, long + b"1", long + b"1", long + b"2"]], 10).most_frequent(10)
    assert {name for name, *_ in told} == {long}
    assert sorted((occurrences, is_whole) for _, is_whole, occurrences, _ in told) == [
        (1, False),
        (1, True),
        (2, False),
    ]


def test_the_counters_do_not_grow_with_the_strings() -> None:
    frequent = Frequent(50)
    for batch in range(20):
        add(frequent, [b"%d" % (batch * 1_000 + number) for number in range(1_000)])
        told, others_at_most = frequent.most_frequent(1_000)
        assert len(told) <= 50
        assert others_at_most <= (batch + 1) * 1_000 / 51


# -- sizes
# --------


def sizes(numbers: Sequence[int]) -> SizeCounts:
    counts = SizeCounts()
    counts.add(np.array(numbers, np.int64))
    return counts


def exact_quantile(numbers: Sequence[int], percent: int) -> int:
    return sorted(numbers)[-(-len(numbers) * percent // 100) - 1]


some_sizes = st.one_of(st.integers(0, 200), st.integers(0, 2**31 - 1))


@given(st.lists(some_sizes, min_size=1, max_size=60))
def test_quantiles_of_sizes_are_within_their_error(numbers: list[int]) -> None:
    found = sizes(numbers).result()
    assert found is not None
    assert (found.smallest, found.largest) == (min(numbers), max(numbers))
    assert found.mean == round(sum(numbers) / len(numbers), 1)
    for percent, told in ((50, found.p50), (90, found.p90), (99, found.p99)):
        exact = exact_quantile(numbers, percent)
        assert abs(told - exact) <= SIZE_ERROR * exact


@pytest.mark.parametrize("size", range(128))
def test_small_sizes_are_told_exactly(size: int) -> None:
    found = sizes([size] * 3 + [1_000]).result()
    assert found is not None
    assert found.p50 == size


@given(st.lists(st.lists(some_sizes, max_size=20), max_size=5))
def test_sizes_that_are_merged_are_those_of_all(parts: list[list[int]]) -> None:
    merged = SizeCounts()
    for part in parts:
        merged.merge(sizes(part))
    assert merged.result() == sizes([each for part in parts for each in part]).result()


def test_nothing_is_told_of_no_sizes() -> None:
    assert SizeCounts().result() is None
