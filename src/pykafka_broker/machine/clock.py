"""The server's time: a port, so that tests can set it.

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

    It advances even if the clock of a test stands still.
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
        """Call `callback` on the event loop once `monotonic_ms` is reached, and never earlier."""
        ...

    async def sleep(self, duration_ms: int) -> None:
        """Return after `duration_ms`, and never earlier."""
        ...


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_at(self, monotonic_ms: int, callback: Callable[[], object]) -> Timer:
        return _PunctualTimer(monotonic_ms, callback)

    async def sleep(self, duration_ms: int) -> None:
        until_ms = self.monotonic_ms() + duration_ms
        await asyncio.sleep(duration_ms / 1000)
        while (left_ms := until_ms - self.monotonic_ms()) > 0:  # noqa: ASYNC110 - sleeps the rest
            await asyncio.sleep(left_ms / 1000)


class _PunctualTimer:
    """A timer of the event loop that is set again if the loop calls too early.

    uvloop rounds a delay to the nearest millisecond and counts it from the last whole one, so it may call up
    to 1 ms early. asyncio may call early by the resolution of the machine's clock: 16 ms on Windows.
    """

    __slots__ = ("_callback", "_due_ms", "_handle")

    _handle: asyncio.TimerHandle | None

    def __init__(self, due_ms: int, callback: Callable[[], object]) -> None:
        self._due_ms = due_ms
        self._callback = callback
        self._set(time.monotonic_ns())

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _set(self, now_ns: int) -> None:
        # Counted from the start of the current millisecond, so that the time has come when they have passed.
        delay_ms = self._due_ms - now_ns // 1_000_000
        self._handle = asyncio.get_running_loop().call_later(delay_ms / 1000, self._call)

    def _call(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns // 1_000_000 < self._due_ms:
            self._set(now_ns)
            return
        # asyncio's handle keeps its callback: without this both objects would refer to each other.
        self._handle = None
        self._callback()
