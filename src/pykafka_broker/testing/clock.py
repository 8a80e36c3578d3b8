"""A clock that stands still until a test moves it.

    clock = VirtualClock()
    clock.call_at(clock.monotonic_ms() + 1_000, callback)
    clock.advance(1_000)             callbacks that fall due run in their order, each at its own moment
    await clock.pass_time(1_000)     the same, and tasks react to each callback before the next one

Timers of `VirtualClock(early_ms=1)` fire a millisecond early, as those of event loops may: code that must not
act before its moment has to set a second timer, which then fires on time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

#: When a `VirtualClock` begins.
NOW = 1_700_000_000_000


class VirtualTimer:
    """A callback that `VirtualClock` calls at its moment, unless it was cancelled."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    @property
    def cancelled(self) -> bool:
        return self._callback is None

    def cancel(self) -> None:
        # Release the callback at once.
        self._callback = None

    def run(self) -> None:
        if self._callback is not None:
            self._callback()


class VirtualClock:
    """The `Clock` of a broker under test; time passes only in `advance` and `pass_time`.

    A timer that is set for more than `early_ms` ahead fires `early_ms` too early.
    """

    def __init__(self, now_ms: int = NOW, *, early_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._early_ms = early_ms
        self._monotonic_ms = 0
        self._order = count()
        self._timers: list[tuple[int, int, VirtualTimer]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def call_at(self, monotonic_ms: int, callback: Callable[[], object]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        if monotonic_ms - self._early_ms > self._monotonic_ms:
            monotonic_ms -= self._early_ms
        heapq.heappush(self._timers, (monotonic_ms, next(self._order), timer))
        if monotonic_ms <= self._monotonic_ms:
            self._run_soon()
        return timer

    def _run_soon(self) -> None:
        """Run a timer that is already due in the next turn of the event loop, if one is running."""
        try:
            asyncio.get_running_loop().call_soon(self._run_next, self._monotonic_ms)
        except RuntimeError:
            return

    async def sleep(self, duration_ms: int) -> None:
        """Wait until `duration_ms` of virtual time have passed."""
        is_over = asyncio.Event()
        timer = self.call_at(self._monotonic_ms + duration_ms, is_over.set)
        try:
            await is_over.wait()
        finally:
            timer.cancel()

    @property
    def pending_timers(self) -> int:
        """Timers that are set and not cancelled."""
        return sum(not timer.cancelled for _, _, timer in self._timers)

    def advance(self, duration_ms: int) -> None:
        """Let time pass; timers that fall due run in their order, each at its own moment."""
        until_ms = self._monotonic_ms + duration_ms
        while self._run_next(until_ms):
            pass
        self._move_to(until_ms)

    def set_wall_clock(self, by_ms: int) -> None:
        """Set the wall clock forward, or back if `by_ms` is negative; the monotonic clock stays."""
        self._now_ms += by_ms

    def stand_still(self, duration_ms: int) -> None:
        """Let time pass while the process does not run: what falls due meanwhile comes in `advance`."""
        self._move_to(self._monotonic_ms + duration_ms)

    async def pass_time(self, duration_ms: int) -> None:
        """Let time pass as `advance` does, and let tasks react to each timer before the next one."""
        until_ms = self._monotonic_ms + duration_ms
        await settle()
        while self._run_next(until_ms):
            await settle()
        self._move_to(until_ms)
        await settle()

    def _run_next(self, until_ms: int) -> bool:
        while self._timers and self._timers[0][0] <= until_ms:
            due_ms, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                self._move_to(max(due_ms, self._monotonic_ms))
                timer.run()
                return True
        return False

    def _move_to(self, monotonic_ms: int) -> None:
        self._now_ms += monotonic_ms - self._monotonic_ms
        self._monotonic_ms = monotonic_ms


async def settle(turns: int = 10) -> None:
    """Let every task that is ready run, `turns` times."""
    for _ in range(turns):
        await asyncio.sleep(0)
