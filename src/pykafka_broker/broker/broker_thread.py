"""A broker, or a cluster, in its own thread with its own event loop: for programs that are not asynchronous.

The caller waits for the start and for the stop, and gets their exceptions. Ctrl-C during the start undoes the
start. Ctrl-C during the stop ends the wait: if the process ends then, the next start recovers all
acknowledged records, as after a kill.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Thread
from typing import Any, Final, Protocol, TypeVar

from pykafka_broker.system.event_loop import run

Result = TypeVar("Result")

LOOK_INTERVAL_S: Final = 0.1
"""Seconds of one wait for the broker's thread. If Ctrl-C comes just before a wait, Python notices it only
after the wait; on Windows no signal ends a wait.
"""


class Runnable(Protocol):
    """A `Broker` or a `Cluster`."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class BrokerThread:
    """Runs one broker from `start` to `stop`, which are called in any other thread."""

    def __init__(self, broker: Runnable, name: str) -> None:
        self._broker = broker
        # A daemon: the process can end even if its program never calls `stop`.
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._stop_asked: Future[None] = Future()
        self._started: Future[None] = Future()
        self._stopped: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Return when the broker serves.

        Raises:
            Exception: the error of the broker's own start, which has been undone then.
        """
        try:
            self._thread.start()
            _wait(self._started)
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Return when the broker has stopped; raises the error of its own stop."""
        self._end()
        _wait(self._stopped)

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the broker's loop; return its result, or raise its error.

        Ctrl-C cancels it.

        Raises:
            RuntimeError: the broker does not run.
        """
        if self._loop is None or self._stop_asked.done():
            coroutine.close()
            raise RuntimeError("this has been stopped, or has not been started")
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return _wait(running)
        except BaseException:
            running.cancel()
            raise

    def _end(self) -> None:
        with suppress(InvalidStateError):  # asked before, or the start has failed
            self._stop_asked.set_result(None)
        while self._thread.is_alive():  # false if Ctrl-C came before the thread had started
            self._thread.join(LOOK_INTERVAL_S)

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:
            (self._stopped if self._started.done() else self._started).set_exception(error)
        else:
            self._stopped.set_result(None)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        stop = asyncio.wrap_future(self._stop_asked)
        try:
            starting = asyncio.ensure_future(self._broker.start())
            await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
            await starting
            self._started.set_result(None)
            await stop
            await self._broker.stop()
        finally:
            stop.cancel()  # later callbacks would call into a closed loop


def _wait(future: Future[Result]) -> Result:
    """Return the result of `future` when it is done, or raise its error; Ctrl-C ends the wait."""
    while not concurrent.futures.wait((future,), LOOK_INTERVAL_S).done:
        pass  # look for Ctrl-C
    return future.result()
