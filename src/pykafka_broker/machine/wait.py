"""A wait that ends at a certain time, or before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

#: `call_at` of a clock or a scheduler.
CallAt = Callable[[int, Callable[[], None]], Any]


class Wait:
    """One wait. Event loop only."""

    __slots__ = ("_ended",)

    def __init__(self) -> None:
        self._ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def end(self, *_: object) -> None:
        """End the wait before its time, unless it is over."""
        self._is_over(in_time=True)

    async def until(self, call_at: CallAt, time_ms: int) -> bool:
        """Return True once the wait is ended, or False at `time_ms` of the clock that has `call_at`."""
        timer = call_at(time_ms, lambda: self._is_over(in_time=False))
        try:
            return await self._ended
        finally:
            timer.cancel()

    def _is_over(self, *, in_time: bool) -> None:
        if not self._ended.done():
            self._ended.set_result(in_time)
