"""The most frequent of many byte strings, with a limited number of counters. Pure.

This is space-saving (Metwally, Agrawal, El Abbadi, 2005) that takes whole batches: the strings of a batch are
counted exactly, and merged as summaries are (Agarwal and others, "Mergeable summaries", 2012). With m
counters and n strings:

  * the true count of a string with a counter lies between `occurrences - error` and `occurrences`;
  * a string without a counter occurs at most `floor` times, and `floor` is at most n / (m + 1): so none that
    occurs more often is missed.

Strings are told apart by their hash of 64 bits; of each, only the first `NAME_BYTES` bytes are kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pykafka_broker.arrow.core.profile.murmur3 import Hashes, hash64
from pykafka_broker.arrow.core.varints import Octets, Positions
from pykafka_broker.system.named_tuple import NamedTuple

#: The most bytes of a string that are kept.
NAME_BYTES = 128

Counts = npt.NDArray[np.int64]
#: The first bytes of some strings, each with whether these are the whole string.
Names = list[tuple[bytes, bool]]


class Counted(NamedTuple):
    """A frequent string."""

    #: Its first bytes.
    name: bytes
    is_whole: bool
    #: How often it occurs at most; `error` of them may be too many.
    occurrences: int
    error: int


class Frequent:
    """Counts strings, and keeps the most frequent ones."""

    __slots__ = ("_counts", "_errors", "_floor", "_hashes", "_most", "_names")

    def __init__(self, most: int) -> None:
        """`most`: the number of counters."""
        self._most = most
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._counts: Counts = np.empty(0, np.int64)
        self._errors: Counts = np.empty(0, np.int64)
        self._names: Names = []
        self._floor = 0

    def add(self, octets: Octets, at: Positions, ends: Positions, hashes: Hashes | None = None) -> None:
        """Count the strings between each two positions, whose hashes may be known."""
        if hashes is None:
            hashes = hash64(octets, at, ends)
        if not hashes.size:
            return
        # As `np.unique` does, which sorts stably and so takes several times as long.
        order = np.argsort(hashes)
        ordered = hashes[order]
        begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        counts = np.diff(begins, append=len(ordered))

        def names(numbers: npt.NDArray[np.intp]) -> Names:
            chosen = order[begins[numbers]]
            return [
                (octets[begin : min(end, begin + NAME_BYTES)].tobytes(), end - begin <= NAME_BYTES)
                for begin, end in zip(at[chosen].tolist(), ends[chosen].tolist(), strict=True)
            ]

        self._absorb(ordered[begins], counts, np.zeros_like(counts), 0, names)

    def merge(self, other: Frequent) -> None:
        """Count the strings of another one."""
        order = np.argsort(other._hashes)

        def names(numbers: npt.NDArray[np.intp]) -> Names:
            return [other._names[number] for number in order[numbers].tolist()]

        self._absorb(other._hashes[order], other._counts[order], other._errors[order], other._floor, names)

    def _absorb(
        self,
        hashes: Hashes,
        counts: Counts,
        errors: Counts,
        floor: int,
        names: Callable[[npt.NDArray[np.intp]], Names],
    ) -> None:
        """Merge a summary: its strings by ascending hash, and how often another one may occur there."""
        own = len(self._hashes)
        place = np.searchsorted(hashes, self._hashes)
        is_shared = np.zeros(own, bool)
        inside = place < len(hashes)
        is_shared[inside] = hashes[place[inside]] == self._hashes[inside]
        place[~is_shared] = 0
        is_new = np.ones(len(hashes), bool)
        is_new[place[is_shared]] = False
        new = np.flatnonzero(is_new)
        all_counts = np.concatenate([self._counts + floor, counts[new] + self._floor])
        all_errors = np.concatenate([self._errors + floor, errors[new] + self._floor])
        all_counts[:own][is_shared] += counts[place[is_shared]] - floor
        all_errors[:own][is_shared] += errors[place[is_shared]] - floor
        self._floor += floor
        kept = np.arange(len(all_counts))
        if len(kept) > self._most:
            # Among equals, those that have a counter keep it.
            order = np.argpartition(-(2 * all_counts + (kept < own)), self._most - 1)
            kept = np.sort(order[: self._most])
            self._floor = max(self._floor, int(all_counts[order[self._most :]].max()))
        old, added = kept[kept < own], new[kept[kept >= own] - own]
        self._hashes = np.concatenate([self._hashes[old], hashes[added]])
        self._names = [self._names[number] for number in old.tolist()] + names(added)
        self._counts, self._errors = all_counts[kept], all_errors[kept]

    def most_frequent(self, wanted: int) -> tuple[list[Counted], int]:
        """So many of the most frequent strings, and how often any other one may occur at most."""
        rows = zip(
            self._counts.tolist(), self._errors.tolist(), self._names, self._hashes.tolist(), strict=True
        )
        # By hash only where nothing else tells two long strings apart.
        found = [
            Counted(*name, occurrences, error)
            for occurrences, error, name, _ in sorted(rows, key=lambda row: (-row[0], *row[1:]))
        ]
        others = (each.occurrences for each in found[wanted:])
        return found[:wanted], max(self._floor, *others, 0)
