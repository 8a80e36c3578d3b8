"""The process of a node or of clients: an event loop with sockets and worker threads of the simulation."""

from __future__ import annotations

import asyncio
import gc
import inspect
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from math import ceil
from typing import Any, ClassVar, TypeVar

from tests.simulation.cluster.wires import AcceptedSocket, End, Host, Wires
from tests.simulation.process import Call, Process
from tests.simulation.violation import Violation
from tests.simulation.world import World

Result = TypeVar("Result")


class NodeProcess(Process):
    """One life on a machine. An error that no task has handled ends the simulation."""

    #: The process whose code runs: of the event loop, or of a worker thread of it.
    running: ClassVar[NodeProcess | None] = None
    #: The processes that have ended: Python would run their tasks to their ends once they are forgotten.
    graves: ClassVar[list[NodeProcess]] = []

    def __init__(
        self, world: World, wires: Wires, host: Host, paused_until_ms: Callable[[], int], slowest_job_ms: int
    ) -> None:
        super().__init__(world, paused_until_ms, self._check)
        self.host = host
        self._wires = wires
        self._slowest_job_ms = slowest_job_ms
        self._ends: set[End] = set()
        self._unhandled: dict[str, Any] | None = None
        #: How often its code has run.
        self.steps = 0

    def end(self) -> None:
        """End at once; the machine resets the connections. No task goes on, not even to its `finally`."""
        self.is_over = True
        self.graves.append(self)
        self._wires.ended(self)
        for end in sorted(self._ends, key=lambda end: (end.own, end.peer)):
            end.was_killed()

    def bury(self) -> None:
        """Close what its tasks were at, also the tasks that begin in a `finally` of others."""
        while self._tasks:
            coroutine = self._tasks.pop().get_coro()
            assert inspect.iscoroutine(coroutine)
            while inspect.getcoroutinestate(coroutine) != inspect.CORO_CLOSED:
                # A `finally` that waits, or that misses the loop; closing it goes on behind that.
                with suppress(Exception):
                    coroutine.close()

    # -- callbacks -------------------------------------------------------------------------------------------

    def run_call(self, call: Call) -> None:
        self.steps += 1
        before, NodeProcess.running = NodeProcess.running, self
        try:
            super().run_call(call)
        finally:
            NodeProcess.running = before

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """An error is for those who wait for the task; without them asyncio reports it."""
        self._tasks.discard(task)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_over and "exception" in context:
            self._unhandled = context

    def _check(self) -> None:
        if self._unhandled is not None:
            raise Violation(f"{self._unhandled['message']}: {self._unhandled['exception']!r}")

    def call_later(  # type: ignore[override]  # what comes back is a handle in all but its class
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_after(ceil(delay * 1000), callback, *args)

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_after(ceil(when * 1000) - self.world.now_ms, callback, *args)

    def call_soon_threadsafe(  # type: ignore[override]  # as above
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_after(0, callback, *args)

    # -- worker threads --------------------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]  # arguments of any kind
        self, executor: Any, func: Callable[..., Result], *args: Any
    ) -> Any:
        """A job of any pool of threads: jobs overtake each other."""
        return self.run_blocking(partial(self._as_running, partial(func, *args)), self._slowest_job_ms)

    def _as_running(self, job: Callable[[], Result]) -> Result:
        self.steps += 1
        before, NodeProcess.running = NodeProcess.running, self
        try:
            return job()
        finally:
            NodeProcess.running = before

    # -- sockets ---------------------------------------------------------------------------------------------

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port or 0))]

    def add_reader(  # type: ignore[override]  # arguments of any kind
        self, fd: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        self._wires.watch(fd, partial(callback, *args))

    def remove_reader(self, fd: Any) -> bool:
        self._wires.watch(fd, None)
        return True

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        connected: asyncio.Future[End | None] = self.create_future()

        def done(end: End | None) -> None:
            if not connected.done():
                connected.set_result(end)
            elif end is not None:
                end.abort()

        self._wires.connect(self.host, self, (host, port), done)
        end = await connected
        if end is None:
            raise ConnectionRefusedError(111, f"Connect call failed {(host, port)}")
        return self._serve(end, protocol_factory())

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **_: Any) -> Any:
        assert isinstance(sock, AcceptedSocket)
        return self._serve(sock.end, protocol_factory())

    def _serve(self, end: End, protocol: asyncio.BaseProtocol) -> tuple[End, asyncio.BaseProtocol]:
        self._ends.add(end)
        end.attach(protocol)
        return end, protocol


@contextmanager
def burying() -> Iterator[None]:
    """Bury only in the end what ended processes have left behind, and hear nothing of it.

    Python's collector would come at times that no seed knows, and run pieces of processes that have ended;
    what is not closed here it would run in whatever simulation comes next.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        before, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            with warnings.catch_warnings(action="ignore"):
                while NodeProcess.graves:
                    NodeProcess.graves.pop().bury()
                gc.collect()
        finally:
            sys.unraisablehook = before


class SimulatedPool:
    """A pool of threads, in place of `ThreadPoolExecutor`: its jobs run in the process that has made it."""

    def __init__(self, workers: int, thread_name_prefix: str) -> None:
        assert NodeProcess.running is not None
        self._process = NodeProcess.running

    def submit(self, job: Callable[..., object], *args: Any) -> None:
        self._process.run_in_executor(self, job, *args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing runs on."""
