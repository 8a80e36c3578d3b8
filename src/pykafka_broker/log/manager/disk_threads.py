"""Worker threads for each log directory, so that a slow disk delays only the work on that disk.

With shared threads, four partitions of a failing disk would block every producer and consumer of the node.
A directory also has separate threads for each kind of work, so that an acknowledgement does not queue behind
a consumer that reads last week's records. Threads are made on demand: if readers find everything in the page
cache there are none for reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.partition.partition_log import PartitionLog

Result = TypeVar("Result")

#: A disk serves several requests at a time faster than one after the other.
THREADS_PER_DIRECTORY = 4


class DiskThreads:
    """The threads of all directories of a node for one kind of work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pools: dict[str, ThreadPoolExecutor] = {}

    def run(self, log: PartitionLog, job: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run a job that waits for the disk of `log`."""
        return self.run_in(directory_name(log.directory), job)

    def run_in(self, directory: str, job: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run a job that waits for the disk of a log directory."""
        pool = self._pools.get(directory)
        if pool is None:
            pool = ThreadPoolExecutor(THREADS_PER_DIRECTORY, thread_name_prefix=f"{self._name}-{directory}")
            self._pools[directory] = pool
        return asyncio.get_running_loop().run_in_executor(pool, job)

    def shutdown(self) -> None:
        """Wait for the running jobs, and end the threads."""
        for pool in self._pools.values():
            pool.shutdown()
