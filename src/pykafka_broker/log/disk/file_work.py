"""File work in the background: jobs in worker threads, one after the other where they are many, and removals
that are due later.

A thread without an event loop (a tool, or a worker inside its own file work) runs its job itself, at once: it
may wait for disks.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pykafka_broker.log.disk.files import FileSystem, directory_name
from pykafka_broker.machine.threads import RunOnDisk
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.log.LogManager")

#: How long the periodic work of all directories waits for the disk of one.
PATIENCE_S = 1.0
#: The work of removals, by its name for `in_each`.
REMOVALS = "removals"


class _Leaving(NamedTuple):
    """A folder that is to be renamed."""

    aside: str
    settle: Callable[[], object]


class FileWork:
    """The file work of one node."""

    def __init__(
        self,
        files: FileSystem,
        *,
        run_on_disk: RunOnDisk,
        monotonic_ms: Callable[[], int],
    ) -> None:
        self._files = files
        self._run_on_disk = run_on_disk
        self._monotonic_ms = monotonic_ms
        self._jobs: set[asyncio.Future[Any]] = set()
        #: Work of `in_each` that has not ended, by its kind and log directory.
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}
        #: Those of `_under_way` that `in_each` no longer waits for.
        self._given_up: set[asyncio.Future[Any]] = set()
        #: By log directory: jobs to run one after the other; the first is running.
        self._in_turn: defaultdict[str, deque[Callable[[], object]]] = defaultdict(deque)
        #: Held while one is added or removed: the thread that runs the last one may end meanwhile.
        self._turns_lock = threading.Lock()
        #: Removals: due time, log directory and job of each.
        self._buried: deque[tuple[int, str, Callable[[], object]]] = deque()
        #: By log directory: folders that are still to be renamed before they are removed.
        self._leaving: defaultdict[str, dict[str, _Leaving]] = defaultdict(dict)
        #: Held while one is renamed.
        self._leaving_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def jobs(self) -> int:
        """The number of jobs that have been handed in and have not ended; those in turn count as one."""
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
        """Run a job in a worker thread after the log directory's earlier ones, so that threads stay free for
        other work. Any thread.
        """
        if not _on_event_loop():
            job()
            return
        jobs = self._in_turn[directory]
        with self._turns_lock:
            jobs.append(job)
            is_first = len(jobs) == 1
        if is_first:
            self.run_later(directory, partial(self._run_turns, jobs))

    def _run_turns(self, jobs: deque[Callable[[], object]]) -> None:
        while True:
            _do(jobs[0])
            with self._turns_lock:
                jobs.popleft()
                if not jobs:
                    return

    async def in_each(self, what: str, jobs: Mapping[str, Callable[[], object]]) -> None:
        """Run the job of each log directory and wait for all of them, but for at most `PATIENCE_S`. A slower
        job goes on; until it ends, its directory gets no other job of the kind `what`.
        """
        for directory, job in jobs.items():
            if (what, directory) not in self._under_way:
                future = asyncio.ensure_future(self._run_on_disk(directory, job))
                self._jobs.add(future)
                self._under_way[what, directory] = future
                future.add_done_callback(partial(self._ended, (what, directory)))
        waited_for = [self._under_way[what, directory] for directory in jobs]
        waited_for = [future for future in waited_for if future not in self._given_up]
        if waited_for:
            _, late = await asyncio.wait(waited_for, timeout=PATIENCE_S)
            self._given_up |= late

    def is_free(self, what: str, directory: str) -> bool:
        """Whether no work of the kind is under way in a log directory."""
        return (what, directory) not in self._under_way

    def _ended(self, key: tuple[str, str], future: asyncio.Future[Any]) -> None:
        del self._under_way[key]
        self._given_up.discard(future)
        self._job_done(future)

    def _job_done(self, future: asyncio.Future[Any]) -> None:
        self._jobs.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.error("file work failed", exc_info=error)

    async def finish(self) -> None:
        """Return when no job is left; removals that are not due stay undone."""
        while self._jobs:
            await asyncio.wait(list(self._jobs))

    # --- removals ---------------------------------------------------------------------------------

    def bury(self, directory: str, job: Callable[[], object], delay_ms: int) -> None:
        """Run a removal in a log directory after a delay (`file.delete.delay.ms`). Any thread."""
        self._buried.append((self._monotonic_ms() + delay_ms, directory, job))

    def due_removals(self, now_ms: int) -> dict[str, Callable[[], object]]:
        """The removals that are due, by log directory, except where removals are under way."""
        due: defaultdict[str, list[Callable[[], object]]] = defaultdict(list)
        for _ in range(len(self._buried)):
            entry = self._buried.popleft()
            if entry[0] <= now_ms and self.is_free(REMOVALS, entry[1]):
                due[entry[1]].append(entry[2])
            else:
                self._buried.append(entry)
        return {directory: partial(_do_all, jobs) for directory, jobs in due.items()}

    def bury_folder(self, path: str, delay_ms: int) -> None:
        """Remove a folder after a delay."""
        self._bury_folder(path, delay_ms, formerly=path)

    def remove_folder(self, directory: str, aside: str, delay_ms: int, settle: Callable[[], object]) -> None:
        """Rename a folder to `aside` in a worker thread, soon, and remove it after a delay.

        `settle` returns when no worker touches its files by name any more. Call `leave` before making another
        folder of that name.
        """
        parent = directory_name(directory)
        leaving = self._leaving[parent]
        leaving[directory] = _Leaving(aside, settle)
        self._bury_folder(aside, delay_ms, formerly=directory)
        if len(leaving) == 1:
            self.run_later(parent, partial(self._leave_all, parent))

    def _bury_folder(self, path: str, delay_ms: int, *, formerly: str) -> None:
        def remove() -> None:
            self.leave(formerly)
            try:
                self._files.remove_tree(path)
                logger.debug("Deleted %s", path)
            except OSError as error:
                logger.warning("%s could not be deleted, the next start tries again: %s", path, error)

        self.bury(directory_name(path), remove, delay_ms)

    def _leave_all(self, parent: str) -> None:
        while leaving := self._leaving[parent]:
            self.leave(next(iter(leaving)))

    def leave(self, directory: str) -> None:
        """Rename a folder that waits for its removal, unless that is done. Worker-safe."""
        parent = directory_name(directory)
        if directory not in self._leaving[parent]:
            return
        with self._leaving_locks[parent]:
            leaving = self._leaving[parent].get(directory)
            if leaving is None:
                return
            leaving.settle()
            try:
                self._files.rename(directory, leaving.aside)
            except OSError as error:
                logger.error("%s cannot be deleted: %s", directory, error)
            else:
                logger.debug("%s is renamed to %s and is scheduled for deletion", directory, leaving.aside)
            del self._leaving[parent][directory]


def _do_all(jobs: Iterable[Callable[[], object]]) -> None:
    for job in jobs:
        _do(job)


def _do(job: Callable[[], object]) -> None:
    try:
        job()
    except Exception:  # go on with the others
        logger.exception("file work failed")


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
