"""Retention of all logs: worker threads find expired segments, the event loop takes them out of service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.file_work import FileWork
from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.manager.deferred_files import DeferredFiles
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.protocol.errors import KafkaError

logger = logging.getLogger("kafka.log.LogManager")


class RetentionRounds:
    """Applies retention to the logs of one broker."""

    def __init__(self, registry: LogRegistry, work: FileWork, deferred: DeferredFiles) -> None:
        self._registry = registry
        self._work = work
        self._deferred = deferred
        #: Logs that start a new segment before they lose all their records.
        self.under_way: set[asyncio.Future[None]] = set()

    def look_in(self, log_dir: LogDir, now_ms: int) -> None:
        """Begin to look for expired segments in a directory, and remove them. Event loop."""
        loop = asyncio.get_running_loop()
        self._work.run_later(log_dir.path, partial(self._look, log_dir, now_ms, loop))

    def _look(self, log_dir: LogDir, now_ms: int, loop: asyncio.AbstractEventLoop) -> None:
        """Find expired segments. Worker thread: a segment's age is read from a file."""
        due = []
        for log in list(self._registry.served.values()):
            if directory_name(log.directory) == log_dir.path and log.offline is None:
                try:
                    if log.trimmer.expired(now_ms).segments:
                        due.append(log)
                except (OSError, KafkaError) as error:
                    logger.error("%s: retention failed: %s", log.name, error)
                except Exception:  # go on with the other logs
                    logger.exception("%s: retention failed", log.name)
        if due and not loop.is_closed():
            loop.call_soon_threadsafe(self._remove_expired, now_ms, due)

    def _remove_expired(self, now_ms: int, logs: Iterable[PartitionLog]) -> None:
        """Apply retention to these logs without waiting for a disk."""
        for log in logs:
            if log.closed or log.offline is not None:
                continue
            try:
                due = log.trimmer.names_due(now_ms)
                if due is None:
                    log.trimmer.apply_retention(now_ms)
                    continue
                task = asyncio.ensure_future(self._begin_anew(log, due, now_ms))
                self.under_way.add(task)
                task.add_done_callback(self.under_way.discard)
            except (OSError, KafkaError) as error:
                logger.error("%s: retention failed: %s", log.name, error)

    async def _begin_anew(self, log: PartitionLog, due: NamesDue, now_ms: int) -> None:
        """Remove all records of a log, once it has a new segment."""
        try:
            await self._deferred.make(due)
        except KafkaError as error:
            logger.warning("%s: what has expired stays for now: %s", log.name, error.message)
        if log.closed or log.offline is not None:
            return
        try:
            log.trimmer.apply_retention(now_ms)
        except (OSError, KafkaError) as error:
            logger.error("%s-%d: retention failed: %s", log.topic, log.partition, error)
