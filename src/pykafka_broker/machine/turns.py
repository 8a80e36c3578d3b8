"""Runs timers of many shards that are due at the same time one by one, one in each turn of the event loop.

A coordinator's shards all look for expired state at the same time, and slices of long work are due at once.
Each callback is short, but fifty would block the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from pykafka_broker.machine.scheduler import Handle, Scheduler
from pykafka_broker.machine.step import AT_ONCE_MS


class Turns:
    """A `Scheduler` over another one, which lets other work run between two callbacks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.now_ms = scheduler.now_ms
        self.monotonic_ms = scheduler.monotonic_ms
        self._scheduler = scheduler
        self._waiting: deque[_Call] = deque()
        self._is_taken = False

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Handle:
        call = _Call(callback)
        call.handle = self._scheduler.call_at(at_ms, lambda: self._due(call))
        return call

    def _due(self, call: _Call) -> None:
        if self._is_taken:
            self._waiting.append(call)
        else:
            self._run(call)

    def _run(self, call: _Call) -> None:
        self._is_taken = True
        self._scheduler.call_at(AT_ONCE_MS, self._next)
        call.callback()

    def _next(self) -> None:
        self._is_taken = False
        while self._waiting:
            call = self._waiting.popleft()
            if not call.is_cancelled:
                self._run(call)
                return


class _Call:
    """A callback that waits for its time, then for its turn."""

    __slots__ = ("callback", "handle", "is_cancelled")

    handle: Handle

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.handle.cancel()
