"""The scheduler port: the wall clock, and calls at a time of it.

Shards and coordinators read the time and set their timers through it, so that tests can set the time.
`WallTimers` implements it over the broker's clock, `Turns` and `SteadyTimers` over another scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Handle(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """Wall clock and timers.

    `call_at` converts a time of the wall clock into a delay at once: setting the clock later must not end
    sessions. So the callback may come while the clock still shows less than `at_ms`; rounding alone makes up
    to a millisecond. Code that acts by the time must use the later one of `now_ms` and `at_ms`.
    """

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment, for durations: setting the wall clock does not move it."""
        ...

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Handle: ...
