"""Timers by the wall clock, for cores whose events carry `now_ms`: a `Scheduler` over the server's clock."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.machine.clock import Clock, Timer


class WallTimers:
    """Calls back at a time of the wall clock; setting the clock does not move a running timer."""

    __slots__ = ("_clock", "monotonic_ms", "now_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now_ms = clock.now_ms
        self.monotonic_ms = clock.monotonic_ms

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Timer:
        clock = self._clock
        return clock.call_at(clock.monotonic_ms() + at_ms - clock.now_ms(), callback)
