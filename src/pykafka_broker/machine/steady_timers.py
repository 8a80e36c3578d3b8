"""Timers by a clock that goes on steadily, for cores that compare the `now_ms` of their events to measure
durations: setting the wall clock neither ends nor prolongs a session or a lock, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.machine.scheduler import Handle, Scheduler


class SteadyTimers:
    """A `Scheduler` over another one: `now_ms` is what the wall clock would show if it had not been set since
    this object was made, and `wall_ms` is what it shows, for timestamps that others read or write.
    """

    __slots__ = ("_began_ms", "_scheduler", "monotonic_ms", "wall_ms")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.wall_ms = scheduler.now_ms
        self.monotonic_ms = scheduler.monotonic_ms
        #: The wall clock when the monotonic clock began.
        self._began_ms = scheduler.now_ms() - scheduler.monotonic_ms()

    def now_ms(self) -> int:
        return self._began_ms + self.monotonic_ms()

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Handle:
        return self._scheduler.call_at(self.wall_ms() + at_ms - self.now_ms(), callback)
