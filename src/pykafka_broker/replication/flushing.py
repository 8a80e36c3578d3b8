"""The syncs of `flush.messages`: records are on disk before they are acknowledged."""

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
    """The owner of a log to sync, which is told of the progress."""

    @property
    def log(self) -> PartitionLog:
        """The log to sync, which may move to another directory."""
        ...

    def on_flushed(self) -> None:
        """The log is on disk up to its recovery point; more may remain."""
        ...

    def on_flush_ended(self, error: ErrorCode) -> None:
        """The syncs have ended: everything is on disk, or `error`."""
        ...


class Flushing:
    """One sync of a log at a time; records appended meanwhile share the next one. Event loop only."""

    __slots__ = ("_flushed", "_task", "_threads", "is_under_way")

    def __init__(self, flushed: Flushed, threads: SyncThreads) -> None:
        self._flushed = flushed
        self._threads = threads
        self._task: asyncio.Task[None] | None = None
        #: Whether appended records may not be on disk yet.
        self.is_under_way = False

    def begin(self) -> None:
        """Start syncing until everything is on disk, unless that is under way."""
        if not self.is_under_way:
            self.is_under_way = True
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        error = ErrorCode.KAFKA_STORAGE_ERROR  # records that are not on disk are not acknowledged
        try:
            while (log := self._flushed.log).state.recovery_point < log.state.log_end_offset:
                if log.state.retired:  # the partition was deleted: its log is not synced any more
                    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    return
                try:
                    await self._threads.run(log, log.flusher.flush)
                except KafkaError:
                    if log is self._flushed.log:
                        raise
                if log is self._flushed.log:  # otherwise it has moved to another directory meanwhile
                    self._flushed.on_flushed()
            error = ErrorCode.NONE
        except KafkaError as failure:
            error = failure.code
        except Exception:  # for instance no thread could be started
            logger.exception("%s could not be synced", self._flushed.log.name)
        finally:
            self.is_under_way = False
            self._flushed.on_flush_ended(error)
