"""The scheduler port: the wall clock, and calls at a moment of it.

Shards and coordinators take the time and set their timers through it, so that tests can turn the hands.
`WallTimers` implements it over the broker's clock, `Turns` over another scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Handle(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """Wall clock and timers.

    `call_at` names a moment of the wall clock and turns it into a delay at once: setting the clock later
    must not end sessions. So the callback may come while the clock shows less than `at_ms`, if only by a
    millisecond, whose parts the two clocks count differently: what acts by the time takes the later of both.
    """

    def now_ms(self) -> int: ...

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Handle: ...
