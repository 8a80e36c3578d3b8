"""Time as the server sees it: a port, so that tests set the time.

`now_ms` is the wall clock (record timestamps, retention); `monotonic_ms` never goes back and measures
deadlines. Nothing else in the server reads the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


def processing_ns() -> int:
    """Nanoseconds since some moment, to measure how long work takes.

    It goes on where the clock of a test stands still.
    """
    return time.perf_counter_ns()


class Timer(Protocol):
    """A callback that is due later."""

    def cancel(self) -> None:
        """Forget the callback if it has not run."""
        ...


class Clock(Protocol):
    """The current time, and timers that call back on the event loop."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the wall clock."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back."""
        ...

    def call_at(self, monotonic_ms: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the event loop once `monotonic_ms` is reached."""
        ...

    async def sleep(self, duration_ms: int) -> None:
        """Return after `duration_ms`."""
        ...


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_at(self, monotonic_ms: int, callback: Callable[[], object]) -> Timer:
        # Rounded up to the next millisecond, so that the callback finds its moment reached.
        delay_ms = max(0.0, monotonic_ms - time.monotonic_ns() / 1_000_000)
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)

    async def sleep(self, duration_ms: int) -> None:
        await asyncio.sleep(duration_ms / 1000)
