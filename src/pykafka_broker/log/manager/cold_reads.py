"""Reads that may wait for a disk, in threads of that disk; and the logs with late reads.

If a disk does not answer in time, a fetch is answered with the records of its other partitions. The read goes
on and brings its bytes into the page cache. Until it ends the log counts as late: the next fetch waits for
the log only as for a partition without new records. When the read ends, the requests parked on the log are
woken.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

from pykafka_broker.log.manager.disk_threads import DiskThreads
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait

Result = TypeVar("Result")


class ColdReads:
    """The reads of one node that the page cache could not serve. Event loop only."""

    def __init__(self, threads: DiskThreads, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        #: The number of unfinished reads that were given up, by log.
        self._late: Counter[PartitionLog] = Counter()

    def run(self, log: PartitionLog, read: Callable[[], Result]) -> asyncio.Future[Result]:
        """Read in a thread for the disk of a log."""
        return self._threads.run(log, read)

    def is_late(self, log: PartitionLog) -> bool:
        """Whether a read of the log was given up and goes on."""
        return log in self._late

    async def first_done(self, reads: Collection[asyncio.Future[Any]], until_ms: int) -> None:
        """Return when one of the reads has ended, or at `until_ms` (monotonic)."""
        wait = Wait()
        for read in reads:
            read.add_done_callback(wait.end)
        try:
            await wait.until(self._clock.call_at, until_ms)
        finally:
            for read in reads:
                read.remove_done_callback(wait.end)

    def give_up(self, log: PartitionLog, read: asyncio.Future[Any]) -> None:
        """Note that no fetch waits for the read any longer."""
        self._late[log] += 1
        read.add_done_callback(partial(self._ended, log))

    def _ended(self, log: PartitionLog, read: asyncio.Future[Any]) -> None:
        self._late[log] -= 1
        if not self._late[log]:
            del self._late[log]
        if not read.cancelled():
            read.exception()  # the next reader gets it
        log.state.wake_waiting()
