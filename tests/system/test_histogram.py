"""The bucket that a value counts to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.system.histogram import (
    BUCKET_COUNT,
    BUCKETS,
    TABLE_UNITS,
    bucket_of,
    middle_of,
    new_histogram,
    record,
)


@given(st.integers(0, 1 << 40))
def test_the_middle_of_a_bucket_is_near_its_values(units: int) -> None:
    assert abs(middle_of(bucket_of(units)) - units) <= units / 16


def test_buckets_follow_each_other_without_a_gap() -> None:
    assert sorted(set(BUCKETS)) == list(range(bucket_of(TABLE_UNITS - 1) + 1))
    assert bucket_of(TABLE_UNITS) == bucket_of(TABLE_UNITS - 1) + 1


@pytest.mark.parametrize("units", [0, 1, TABLE_UNITS - 1, TABLE_UNITS, 1 << 40, 1 << 62])
def test_every_value_counts_to_one_bucket(units: int) -> None:
    histogram = new_histogram()

    record(histogram, units)

    assert histogram[min(bucket_of(units), BUCKET_COUNT - 1)] == sum(histogram) == 1
