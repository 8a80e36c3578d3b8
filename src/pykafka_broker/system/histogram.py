"""Histograms of durations and sizes: lists of integers with eight buckets to an octave, so that a quantile is
known to 6 %.
"""

from __future__ import annotations

#: A unit of time is 1,024 ns, so that it is a shift and no division.
UNIT_SHIFT = 10
NS_PER_UNIT = 1 << UNIT_SHIFT
#: Durations below this many units find their bucket in `BUCKETS` at once.
TABLE_UNITS = 4096


def bucket_of(units: int) -> int:
    """The bucket of a value: exact below 8, then eight to each octave."""
    shift = max(0, units.bit_length() - 4)
    return (shift << 3) + (units >> shift)


def middle_of(bucket: int) -> float:
    """The middle of the values of a bucket."""
    shift = max(0, (bucket >> 3) - 1)
    return ((bucket - (shift << 3)) + 0.5) * (1 << shift) - (0.5 if not shift else 0)


BUCKETS = [bucket_of(units) for units in range(TABLE_UNITS)]
#: Values of more than 2**40 units, twelve days, count to the last bucket.
BUCKET_COUNT = bucket_of(1 << 40) + 1


def new_histogram() -> list[int]:
    return [0] * BUCKET_COUNT


def record(histogram: list[int], units: int) -> None:
    """Count one value."""
    if units < TABLE_UNITS:
        histogram[BUCKETS[units]] += 1
    else:
        histogram[min(bucket_of(units), BUCKET_COUNT - 1)] += 1
