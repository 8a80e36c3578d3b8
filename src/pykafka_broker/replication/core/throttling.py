"""Which replicas are throttled, and when they have sent or fetched too much (KIP-73). Pure.

`leader.replication.throttled.replicas` and `follower.replication.throttled.replicas` of a topic name the
replicas; the broker's rates limit all of them together. Replicas in sync are never throttled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

#: The value that names all replicas.
ALL = "*"


def is_throttled(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's list of throttled replicas, entries `partition:broker` or `*`, names this one."""
    return ALL in replicas or f"{partition}:{broker_id}" in replicas


class RateLimit:
    """The bytes of the last `samples`, each of `sample_ms`, against a limit. Times are monotonic."""

    __slots__ = ("_counts", "_sample_ms", "_samples", "_total", "bytes_per_second")

    def __init__(self, bytes_per_second: int, samples: int, sample_ms: int) -> None:
        #: May be changed at any time.
        self.bytes_per_second = bytes_per_second
        self._samples = samples
        self._sample_ms = sample_ms
        #: The begin and the bytes of each sample, oldest first.
        self._counts: deque[list[int]] = deque()
        self._total = 0

    def count(self, size_bytes: int, now_ms: int) -> None:
        """Note that `size_bytes` were sent or received."""
        counts = self._counts
        if not counts or now_ms - counts[-1][0] >= self._sample_ms:
            self._forget(now_ms)
            counts.append([now_ms, 0])
        counts[-1][1] += size_bytes
        self._total += size_bytes

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether the average rate over the kept samples exceeds the limit."""
        self._forget(now_ms)
        if not self._counts:
            return False
        elapsed_ms = max(now_ms - self._counts[0][0], self._sample_ms)
        return self._total * 1_000 > self.bytes_per_second * elapsed_ms

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._samples * self._sample_ms
        while self._counts and self._counts[0][0] <= oldest_ms:
            self._total -= self._counts.popleft()[1]
