"""Periodic writes of all logs: flushes by `flush.ms`, and the offset checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pykafka_broker.log.config import LONG_MAX
from pykafka_broker.log.disk.checkpoints import find_offset
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.file_work import FileWork
from pykafka_broker.log.disk.files import FileSystem, directory_name
from pykafka_broker.log.disk.names import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.recovery.offset_checkpoints import changed_offsets, write_offsets
from pykafka_broker.protocol.errors import KafkaError

logger = logging.getLogger("kafka.log.LogManager")


class PeriodicWrites:
    """Flushes and checkpoints the logs of one broker. Event loop; threads wait for the disks."""

    def __init__(self, files: FileSystem, dirs: LogDirs, registry: LogRegistry, work: FileWork) -> None:
        self._files = files
        self._dirs = dirs
        self._registry = registry
        self._work = work

    async def flush_due(self, now_ms: int) -> None:
        """Flush the logs whose `flush.ms` has passed since their last flush."""
        due = []
        for log in self._registry.served.values():
            if log.state.config.flush_ms == LONG_MAX or log.state.unflushed_messages == 0:
                continue
            if not self._work.is_free("flush", directory_name(log.directory)):
                continue
            flusher = log.flusher
            if flusher.due_since_ms is None:
                flusher.due_since_ms = now_ms
            if now_ms - flusher.due_since_ms >= log.state.config.flush_ms:
                flusher.due_since_ms = now_ms
                due.append(log)
        jobs = {
            log_dir.path: partial(_flush_each, logs)
            for log_dir in self._dirs.of_partitions
            if (logs := [log for log in due if directory_name(log.directory) == log_dir.path])
        }
        await self._work.in_each("flush", jobs)

    async def checkpoint_recovery_points(self) -> None:
        """Write the recovery point of each log: the records before it are flushed."""
        await self._checkpoint(RECOVERY_POINT_CHECKPOINT, lambda log: log.state.recovery_point)

    async def checkpoint_truncated(self, log: PartitionLog) -> bool:
        """Write the recovery point of a truncated log, and the offset up to which it was compacted; return
        whether the checkpoints have them.

        Until then nothing may be appended: after a crash, new records below the old offsets would be taken
        for flushed, or for compacted.
        """
        log_dir = next(one for one in self._dirs.all if one.path == directory_name(log.directory))
        writes = {RECOVERY_POINT_CHECKPOINT: self.checkpoint_recovery_points}
        if log.state.cleaned_offset is not None:
            writes[CLEANER_CHECKPOINT] = self.checkpoint_cleaned
        for name, write in writes.items():
            for _ in range(2):  # a write under way may have the older offsets
                if self._is_checkpointed(name, log_dir, log):
                    break
                if self._work.is_free(name, log_dir.path):
                    await write()
                else:
                    await self._work.in_each(name, {log_dir.path: lambda: None})
        return all(self._is_checkpointed(name, log_dir, log) for name in writes)

    @staticmethod
    def _is_checkpointed(name: str, log_dir: LogDir, log: PartitionLog) -> bool:
        data = log_dir.checkpointed.get(name)
        if data is None:
            return False
        return (find_offset(data, (log.topic, log.partition)) or 0) <= log.state.log_end_offset

    async def checkpoint_log_starts(self) -> None:
        """Write the log start offsets that differ from the first segment's name."""
        await self._checkpoint(
            LOG_START_CHECKPOINT,
            lambda log: (
                log.state.log_start_offset
                if log.state.log_start_offset > log.state.segments[0].base_offset
                else None
            ),
        )

    async def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks."""
        await self._checkpoint(HIGH_WATERMARK_CHECKPOINT, lambda log: log.state.high_watermark)

    async def checkpoint_cleaned(self) -> None:
        """Write the offset up to which each log has been compacted."""
        await self._checkpoint(CLEANER_CHECKPOINT, lambda log: log.state.cleaned_offset)

    async def _checkpoint(self, name: str, offset_of: Callable[[PartitionLog], int | None]) -> None:
        dirs = [one for one in self._dirs.of_partitions if self._work.is_free(name, one.path)]
        changed = changed_offsets(dirs, self._registry.all(), name, offset_of)
        jobs = {one.log_dir.path: partial(write_offsets, self._files, name, [one]) for one in changed}
        await self._work.in_each(name, jobs)


def _flush_each(logs: list[PartitionLog]) -> None:
    for log in logs:
        try:
            log.flusher.flush()
        except KafkaError:
            logger.debug(
                "%s-%d could not be flushed; its directory is out of service", log.topic, log.partition
            )
