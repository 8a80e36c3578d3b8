"""The jobs that shards have started. Each job is a task, which ends when the partition is unloaded.

The next node that loads the partition starts the work again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.wait import Wait


class PartitionWork:
    """The tasks of one coordinator, by partition. Event loop only."""

    def __init__(self) -> None:
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}

    def start(self, partition: int, job: Coroutine[Any, Any, None]) -> None:
        """Begin a job for the shard of a partition."""
        tasks = self._tasks.setdefault(partition, set())
        task = asyncio.get_running_loop().create_task(job)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def cancel(self, partition: int) -> None:
        """End the jobs of a partition."""
        for task in self._tasks.pop(partition, ()):
            task.cancel()


async def pause(scheduler: Scheduler, duration_ms: int) -> None:
    """Return after `duration_ms`."""
    await Wait().until(scheduler.call_at, scheduler.now_ms() + duration_ms)
