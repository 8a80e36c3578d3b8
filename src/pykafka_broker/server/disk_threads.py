"""Worker threads for each log directory, so that whoever waits for a slow disk waits for his own.

Syncs before acknowledgements (`flush.messages`) go here. Were they to share threads with those of another
directory, four partitions of a dying disk would hold up every producer of the node. Threads are made when
they are first needed: a broker that syncs nothing has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pykafka_broker.log.files import directory_name
from pykafka_broker.log.partition import PartitionLog

#: At a time, in one directory: a disk syncs several files faster than one after the other.
THREADS_PER_DIRECTORY = 4


class DiskThreads:
    """The threads of all directories of a node."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pools: dict[str, ThreadPoolExecutor] = {}

    def run(self, log: PartitionLog, job: Callable[[], Any]) -> Awaitable[Any]:
        """Run a job that waits for the disk of `log` in a thread of its directory."""
        directory = directory_name(log.directory)
        pool = self._pools.get(directory)
        if pool is None:
            pool = ThreadPoolExecutor(THREADS_PER_DIRECTORY, thread_name_prefix=f"{self._name}-{directory}")
            self._pools[directory] = pool
        return asyncio.get_running_loop().run_in_executor(pool, job)

    def shutdown(self) -> None:
        """Wait for what runs, and end the threads."""
        for pool in self._pools.values():
            pool.shutdown()
