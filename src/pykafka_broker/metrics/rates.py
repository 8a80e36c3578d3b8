"""Rates between scrapes, of numbers that only grow.

A rate is over the time since the newest earlier scrape that is at least `LEAST_MS` old, so that two scrapers
that come shortly after each other both get one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

LEAST_MS = 5_000


class Rates:
    """The numbers that earlier scrapes have seen; `now_ms` is monotonic."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._seen: dict[str, deque[tuple[int, float, float]]] = {}

    def of(self, name: str, value: float) -> float:
        """By how much `value` has grown in a second; 0 in the first scrape."""
        duration_ms, grown, _ = self._grown(name, value, 0)
        return grown / (duration_ms / 1_000) if duration_ms else 0.0

    def ratio(self, name: str, value: float, other: float) -> float | None:
        """By how much `value` has grown for each 1 by which `other` has; None if `other` has not grown."""
        _, grown, other_grown = self._grown(name, value, other)
        return grown / other_grown if other_grown else None

    def _grown(self, name: str, value: float, other: float) -> tuple[int, float, float]:
        now_ms = self._now_ms()
        seen = self._seen.setdefault(name, deque())
        while len(seen) > 1 and seen[1][0] <= now_ms - LEAST_MS:
            seen.popleft()
        before_ms, before, other_before = seen[0] if seen else (now_ms, value, other)
        if not seen or seen[-1][0] <= now_ms - LEAST_MS:
            seen.append((now_ms, value, other))
        return now_ms - before_ms, value - before, other - other_before
