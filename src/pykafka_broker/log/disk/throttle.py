"""Limits work to a number of bytes a second, on average since the last pause."""

from __future__ import annotations

from collections.abc import Callable

#: The interval at which the rate is checked, as in Kafka.
CHECK_S = 0.3


class Throttle:
    """Counts bytes, and sleeps when they exceed the rate. One thread only."""

    def __init__(
        self, bytes_per_second: float, *, now_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._rate = bytes_per_second
        self._now_s = now_s
        self._sleep = sleep
        self._period_start_s = now_s()
        self._bytes = 0

    def count(self, count: int) -> None:
        """Count bytes read or written; may sleep."""
        self._bytes += count
        elapsed = self._now_s() - self._period_start_s
        if elapsed < CHECK_S and self._bytes < self._rate * CHECK_S:
            return
        ahead_s = self._bytes / self._rate - elapsed if self._rate > 0 else 0.0
        if ahead_s > 0:
            self._sleep(ahead_s)
        self._period_start_s = self._now_s()
        self._bytes = 0
