"""The syncs that `flush.messages` asks for: what was appended is on disk before it is acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafka.cluster.Partition")

Result = TypeVar("Result")


class SyncThreads(Protocol):
    """Threads for the syncs that acknowledgements wait for."""

    def run(self, log: PartitionLog, job: Callable[[], Result]) -> Awaitable[Result]:
        """Run `job` in a thread for the disk of `log`."""
        ...


class Flushed(Protocol):
    """Has a log to sync, and is told how far that has come."""

    @property
    def log(self) -> PartitionLog:
        """The log to sync, which may move to another directory."""
        ...

    def on_flushed(self) -> None:
        """The log is on disk up to its recovery point; there may be more to sync."""
        ...

    def on_flush_ended(self, error: ErrorCode) -> None:
        """Nothing is left to sync; or an error, after which no sync is under way either."""
        ...


class Flushing:
    """One sync of a log at a time: all that is appended meanwhile shares the next one. Event loop only."""

    __slots__ = ("_flushed", "_task", "_threads", "is_under_way")

    def __init__(self, flushed: Flushed, threads: SyncThreads) -> None:
        self._flushed = flushed
        self._threads = threads
        self._task: asyncio.Task[None] | None = None
        #: Something appended is not known to be on disk yet.
        self.is_under_way = False

    def begin(self) -> None:
        """Sync until nothing is left to sync, if that is not under way."""
        if not self.is_under_way:
            self.is_under_way = True
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        error = ErrorCode.KAFKA_STORAGE_ERROR  # what is not on disk is not acknowledged
        try:
            while (log := self._flushed.log).state.recovery_point < log.state.log_end_offset:
                try:
                    await self._threads.run(log, log.flusher.flush)
                except KafkaError:
                    if log is self._flushed.log:
                        raise
                if log is self._flushed.log:  # else it has moved to another directory meanwhile
                    self._flushed.on_flushed()
            error = ErrorCode.NONE
        except KafkaError as failure:
            error = failure.code
        except Exception:  # such as no thread that could do it
            logger.exception("%s could not be synced", self._flushed.log.name)
        finally:
            self.is_under_way = False
            self._flushed.on_flush_ended(error)
