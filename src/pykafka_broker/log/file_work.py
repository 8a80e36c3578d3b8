"""File work that nobody waits for: jobs in worker threads, one after the other where they are many, and
removals that are due later.

A job that is handed in by a thread without an event loop (a tool, or a worker in the middle of its own file
work) is done there and then: that thread may wait for disks.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from pykafka_broker.log.files import FileSystem, directory_name

logger = logging.getLogger(__name__)

RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]
#: Runs a job in a thread for the disk of this log directory.
RunOnDisk = Callable[[str, Callable[[], Any]], Awaitable[Any]]


class FileWork:
    """The file work of one node."""

    def __init__(
        self,
        files: FileSystem,
        *,
        run_blocking: RunBlocking,
        run_on_disk: RunOnDisk,
        now_ms: Callable[[], int],
    ) -> None:
        self._files = files
        self._run_blocking = run_blocking
        self._run_on_disk = run_on_disk
        self._now_ms = now_ms
        self._jobs: set[asyncio.Future[Any]] = set()
        #: By log directory: jobs that run one after the other, the one that runs among them.
        self._in_turn: defaultdict[str, deque[Callable[[], object]]] = defaultdict(deque)
        self._buried: deque[tuple[int, Callable[[], object]]] = deque()
        #: Folders that are still to be renamed before they are removed, and to what.
        self._leaving: dict[str, str] = {}
        #: Held while one is renamed.
        self._leaving_lock = threading.Lock()

    @property
    def jobs(self) -> int:
        """How many jobs have been handed in and have not ended; those in turn count as one."""
        return len(self._jobs)

    def run_later(self, directory: str, job: Callable[[], object]) -> None:
        """Run a job in a worker thread of a log directory, soon. Any thread."""
        if not _on_event_loop():
            job()
            return
        future = asyncio.ensure_future(self._run_on_disk(directory, job))
        self._jobs.add(future)
        future.add_done_callback(self._job_done)

    def run_in_turn(self, directory: str, job: Callable[[], object]) -> None:
        """Run a job in a worker thread of a log directory when those before it have ended, so that other
        work finds threads. Any thread.
        """
        if not _on_event_loop():
            job()
            return
        jobs = self._in_turn[directory]
        jobs.append(job)
        if len(jobs) == 1:
            self.run_later(directory, partial(_run_turns, jobs))

    def _job_done(self, future: asyncio.Future[Any]) -> None:
        self._jobs.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.error("file work failed", exc_info=error)

    async def finish(self) -> None:
        """Return when no job is left; removals that are not due stay undone."""
        while self._jobs:
            await asyncio.wait(list(self._jobs))

    # --- removals ---------------------------------------------------------------------------------

    def bury(self, job: Callable[[], object], delay_ms: int) -> None:
        """Run a removal after a delay (`file.delete.delay.ms`). Any thread."""
        self._buried.append((self._now_ms() + delay_ms, job))

    async def remove_due(self, now_ms: int) -> None:
        """Carry out the removals that are due, in a worker thread."""
        due = []
        for _ in range(len(self._buried)):
            entry = self._buried.popleft()
            if entry[0] <= now_ms:
                due.append(entry[1])
            else:
                self._buried.append(entry)
        if due:
            await self._run_blocking(lambda: [job() for job in due])

    def bury_folder(self, path: str, delay_ms: int) -> None:
        """Remove a folder after a delay."""
        self._bury_folder(path, delay_ms, formerly=path)

    def remove_folder(self, directory: str, aside: str, delay_ms: int) -> None:
        """Rename a folder to `aside` in a worker thread, soon, and remove it after a delay.

        Whoever wants to make a folder of that name calls `leave` before.
        """
        self._leaving[directory] = aside
        self._bury_folder(aside, delay_ms, formerly=directory)
        if len(self._leaving) == 1:
            self.run_later(directory_name(directory), self._leave_all)

    def _bury_folder(self, path: str, delay_ms: int, *, formerly: str) -> None:
        def remove() -> None:
            self.leave(formerly)
            try:
                self._files.remove_tree(path)
                logger.info("Deleted %s", path)
            except OSError as error:
                logger.warning("%s could not be deleted, the next start tries again: %s", path, error)

        self.bury(remove, delay_ms)

    def _leave_all(self) -> None:
        while self._leaving:
            self.leave(next(iter(self._leaving)))

    def leave(self, directory: str) -> None:
        """Rename a folder that is to be removed, if that is still to do. Worker-safe."""
        if directory not in self._leaving:
            return
        with self._leaving_lock:
            aside = self._leaving.get(directory)
            if aside is None:
                return
            try:
                self._files.rename(directory, aside)
            except OSError as error:
                logger.error("%s cannot be deleted: %s", directory, error)
            else:
                logger.info("%s is renamed to %s and is scheduled for deletion", directory, aside)
            del self._leaving[directory]


def _run_turns(jobs: deque[Callable[[], object]]) -> None:
    while jobs:
        try:
            jobs[0]()
        except Exception:
            logger.exception("file work failed")
        jobs.popleft()


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
