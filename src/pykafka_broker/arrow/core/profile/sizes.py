"""Quantiles of sizes, by counts in buckets that grow with the size. Pure.

Each power of two has `1 << PRECISION_BITS` buckets: the highest bits of a size as a float64 number them. So
sizes up to 127 bytes have a bucket of their own, and the middle of another bucket is off by at most
`SIZE_ERROR` of any size in it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pykafka_broker.arrow.core.profile.results import Sizes

PRECISION_BITS = 6
#: The greatest error of a quantile, as a part of it.
SIZE_ERROR = 0.5 / (1 << PRECISION_BITS)

_SHIFT = 52 - PRECISION_BITS
#: Bucket 0 has the size 0, bucket 1 the size 1.
_FIRST = (1023 << PRECISION_BITS) - 1
#: For sizes below 2^31: what a record can have.
_BUCKETS = (31 << PRECISION_BITS) + 1


class SizeCounts:
    """Counts sizes."""

    __slots__ = ("_buckets", "_largest", "_smallest", "_total")

    def __init__(self) -> None:
        self._buckets = np.zeros(_BUCKETS, np.int64)
        self._smallest = self._largest = self._total = 0

    def add(self, sizes: npt.NDArray[np.int64]) -> None:
        """Count these sizes, which are from 0 up to, and without, 2^31."""
        if not sizes.size:
            return
        numbers = (sizes.astype(np.float64).view(np.int64) >> _SHIFT) - _FIRST
        other = SizeCounts()
        other._buckets = np.bincount(np.maximum(numbers, 0), minlength=_BUCKETS)
        other._smallest, other._largest = int(sizes.min()), int(sizes.max())
        other._total = int(sizes.sum())
        self.merge(other)

    def merge(self, other: SizeCounts) -> None:
        """Count the sizes of another one."""
        if not other._buckets.any():
            return
        is_first = not self._buckets.any()
        self._smallest = other._smallest if is_first else min(self._smallest, other._smallest)
        self._largest = max(self._largest, other._largest)
        self._total += other._total
        self._buckets = self._buckets + other._buckets

    def result(self) -> Sizes | None:
        """The quantiles; None without sizes."""
        upto = np.cumsum(self._buckets)
        count = int(upto[-1])
        if not count:
            return None

        def quantile(percent: int) -> int:
            number = int(np.searchsorted(upto, -(-count * percent // 100)))
            return min(max(_middle(number), self._smallest), self._largest)

        return Sizes(
            smallest=self._smallest,
            p50=quantile(50),
            p90=quantile(90),
            p99=quantile(99),
            largest=self._largest,
            mean=round(self._total / count, 1),
        )


def _middle(number: int) -> int:
    """The middle of a bucket."""
    if not number:
        return 0
    edges = np.array([number + _FIRST, number + _FIRST + 1], np.int64) << _SHIFT
    begin, end = edges.view(np.float64).tolist()
    return int(begin + math.ceil(end) - 1) // 2
