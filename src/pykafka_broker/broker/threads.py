"""The threads of one broker, for work that would block the event loop.

Each kind of work that waits for a disk has its own threads in each log directory
(`log/manager/disk_threads.py`):

* `sync`: syncs and new files that acknowledgements wait for;
* `read`: reads that the page cache cannot serve;
* `upkeep`: deletions, checkpoints and other work that no client waits for.

`workers` run jobs that belong to no single disk: opening, formatting, snapshots, regular expressions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pykafka_broker.log.manager.disk_threads import DiskThreads

Result = TypeVar("Result")

WORKERS = 4


class Threads:
    """All threads of a broker; they are made on demand."""

    def __init__(self, node_id: int) -> None:
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix=f"broker-{node_id}")
        self.sync = DiskThreads(f"sync-{node_id}")
        self.read = DiskThreads(f"read-{node_id}")
        self.upkeep = DiskThreads(f"upkeep-{node_id}")

    def run_blocking(self, function: Callable[[], Result]) -> Awaitable[Result]:
        """Run file work that can stall in a worker."""
        return asyncio.get_running_loop().run_in_executor(self._workers, function)

    def run_in_background(self, job: Callable[[], object]) -> None:
        """Run a job in a worker; the caller does not learn when it ends. Any thread."""
        self._workers.submit(job)

    def shutdown(self) -> None:
        """Wait for the running jobs, and end all threads."""
        for threads in (self.upkeep, self.read, self.sync, self._workers):
            threads.shutdown()


def run_in_own_thread(function: Callable[[], Result]) -> Awaitable[Result]:
    """Run work that takes minutes in a thread that is not one of a broker's workers."""
    return asyncio.get_running_loop().run_in_executor(None, function)
