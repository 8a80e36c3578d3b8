"""A process on the clock of the world: an event loop that runs asyncio's tasks one callback after the other.

A crash ends it: no callback of it runs any more. While it is paused, its callbacks wait. `run_blocking` runs
a job some time later, and gives back its result some time after that: the disk is slow, and what the event
loop does meanwhile, the job has not seen.
"""

from __future__ import annotations

import asyncio
import inspect
from asyncio import events
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, TypeVar

from pykafka_broker.testing.clock import NOW
from tests.simulation.world import World

Result = TypeVar("Result")


class PowerCut(BaseException):
    """The process has just ended, in the middle of what it does."""


class Call:
    """A callback that is due, unless it is cancelled."""

    __slots__ = ("_process", "action", "args", "is_cancelled")

    def __init__(self, process: Process, action: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._process = process
        self.action = action
        self.args = args
        self.is_cancelled = False

    def cancel(self) -> None:
        """Do not call back."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self.is_cancelled

    def __call__(self) -> None:
        self._process.run_call(self)


class Process(asyncio.AbstractEventLoop):
    """One life. `after_callback` is called after each callback, `paused_until_ms` before."""

    def __init__(
        self, world: World, paused_until_ms: Callable[[], int], after_callback: Callable[[], None]
    ) -> None:
        self.world = world
        self.is_over = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._paused_until_ms = paused_until_ms
        self._after_callback = after_callback

    # -- what asyncio calls ----------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]  # what comes back is a handle in all but its class
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        call = Call(self, callback, args)
        self.world.at(0, call)
        return call

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # nothing here makes tasks of generators
        self, coro: Coroutine[Any, Any, Result], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Result]:
        task = asyncio.Task(coro, loop=self, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """An error that the task has not handled ends the simulation."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def time(self) -> float:
        return self.world.now_ms / 1000

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Say nothing of tasks that never end: a crash has left them behind."""

    def end(self) -> None:
        """End at once, whatever the tasks are at."""
        self.is_over = True
        for task in self._tasks:
            coroutine = task.get_coro()
            if inspect.iscoroutine(coroutine) and not coroutine.cr_running:
                coroutine.close()
        self._tasks.clear()

    # -- callbacks -------------------------------------------------------------------------------------

    def call_after(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> Call:
        """Call back after a time of the world."""
        call = Call(self, callback, args)
        self.world.at(delay_ms, call)
        return call

    def run_call(self, call: Call) -> None:
        """Run a callback that is due."""
        if self.is_over or call.is_cancelled:
            return
        pause_ms = self._paused_until_ms() - self.world.now_ms
        if pause_ms > 0:
            self.world.at(pause_ms, call)
            return
        events._set_running_loop(self)
        try:
            call.action(*call.args)
        except PowerCut:
            return
        finally:
            events._set_running_loop(None)
        self._after_callback()

    # -- worker threads --------------------------------------------------------------------------------

    def run_blocking(self, job: Callable[[], Result], slowest_ms: int) -> Awaitable[Result]:
        """Run a job in a worker thread; its result is there within twice `slowest_ms`."""
        future: asyncio.Future[Result] = self.create_future()

        def work() -> None:
            if self.is_over:
                return
            try:
                result = job()
            except PowerCut:
                return
            except Exception as error:
                self.call_after(self._some(slowest_ms), finish, partial(future.set_exception, error))
            else:
                self.call_after(self._some(slowest_ms), finish, partial(future.set_result, result))

        def finish(set_outcome: Callable[[], None]) -> None:
            if not future.done():
                set_outcome()

        self.world.at(self._some(slowest_ms), work)
        return future

    def _some(self, slowest_ms: int) -> int:
        return self.world.random.randint(0, slowest_ms)


class ProcessClock:
    """The clock of a process, which may be too fast or too slow."""

    def __init__(self, process: Process, rate: float) -> None:
        self._process = process
        self._rate = rate

    def now_ms(self) -> int:
        return NOW + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._process.world.now_ms * self._rate)

    def call_at(self, monotonic_ms: int, callback: Callable[[], object]) -> Call:
        late_ms = self._process.world.random.randint(1, 3)
        delay_ms = int((monotonic_ms - self.monotonic_ms()) / self._rate) + late_ms
        return self._process.call_after(delay_ms, callback)

    async def sleep(self, duration_ms: int) -> None:
        is_over = self._process.create_future()
        timer = self.call_at(self.monotonic_ms() + duration_ms, partial(is_over.set_result, None))
        try:
            await is_over
        finally:
            timer.cancel()
