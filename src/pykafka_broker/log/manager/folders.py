"""The folders of one broker's logs: which there are, how one is made, set aside and removed, and what becomes
of those in a directory that fails.

A directory whose disk fails goes out of service: appends to its logs get KAFKA_STORAGE_ERROR, the others go
on. A full disk is no failure: see `PartitionLog.append`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import PartitionKey
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.file_work import FileWork, RunBlocking, RunOnDisk
from pykafka_broker.log.disk.files import FileSystem, directory_name, join, random_id
from pykafka_broker.log.disk.full_disks import FullDisks
from pykafka_broker.log.disk.names import LOG_SUFFIX, partition_folder, set_aside_folder
from pykafka_broker.log.manager.future_log import LogMove
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.recovery.load_partition import create_log
from pykafka_broker.log.recovery.offset_checkpoints import clear_offsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger(__name__)

#: How often a directory's logs warn of the same, which concerns many of them at once.
WARNING_INTERVAL_MS = 60_000


class WantedLog(NamedTuple):
    """A log that there must be; `is_new` means that it cannot be in a directory that is out of service."""

    topic: str
    partition: int
    topic_id: bytes
    config: LogConfig
    directory_id: bytes | None = None
    is_new: bool = True


class LogFolders:
    """The logs of one broker and their folders. Event loop only, except where said."""

    def __init__(
        self,
        files: FileSystem,
        dirs: LogDirs,
        *,
        run_blocking: RunBlocking,
        run_on_disk: RunOnDisk | None,
        now_ms: Callable[[], int],
        on_dir_failure: Callable[[LogDir], None],
    ) -> None:
        self.files = files
        self.dirs = dirs
        self.logs: dict[PartitionKey, PartitionLog] = {}
        #: Partitions on their way into another directory.
        self.moves: dict[PartitionKey, LogMove] = {}
        #: What moves had copied whose sources were not found at the start; nobody is served from it.
        self._copies: dict[PartitionKey, PartitionLog] = {}
        #: Told on the event loop when a directory has gone out of service.
        self.on_dir_failure = on_dir_failure
        self._run_blocking = run_blocking
        self._now_ms = now_ms
        self._run_on_disk = run_on_disk or (lambda directory, job: run_blocking(job))
        self._work = FileWork(
            files,
            run_on_disk=self._run_on_disk,
            now_ms=now_ms,
        )
        #: Directories that refuse writes for now.
        self.full_disks = FullDisks(files, run_later=self._work.run_later, now_ms=now_ms)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._repeated_lines = RepeatedLines(logger, now_ms, WARNING_INTERVAL_MS)
        for log_dir in dirs.all:
            log_dir.environment = Environment(
                files,
                run_later=partial(self._work.run_later, log_dir.path),
                run_in_turn=partial(self._work.run_in_turn, log_dir.path),
                bury=partial(self._work.bury, log_dir.path),
                on_failure=partial(self._disk_failed, log_dir),
                on_exhausted=self._release_files,
                on_write_failed=partial(self.full_disks.write_failed, log_dir),
                warn=partial(self._warn, log_dir.path),
            )

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self.logs.values())

    def all_logs(self) -> Iterator[PartitionLog]:
        """The logs that are served, and those that are being filled to take their places."""
        # As of now: other threads go through them, too.
        yield from list(self.logs.values())
        for move in list(self.moves.values()):
            yield move.future
        yield from list(self._copies.values())

    def __len__(self) -> int:
        return len(self.logs)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, None if there is none here."""
        return self.logs.get((topic, partition))

    def dir_of(self, log: PartitionLog) -> LogDir:
        """The directory a log lies in."""
        return self.dirs.holding(log.directory)

    def logs_in(self, log_dir: LogDir) -> list[PartitionLog]:
        """The logs that lie in a directory, and those on their way into it."""
        return [log for log in self.all_logs() if directory_name(log.directory) == log_dir.path]

    # --- made, and taken away ---------------------------------------------------------------------

    def _make(
        self, wanted: WantedLog, log_dir: LogDir, name: str | None = None, start_offset: int = 0
    ) -> PartitionLog:
        """A new log in a new folder. Worker-safe."""
        assert log_dir.environment is not None
        topic, partition = wanted.topic, wanted.partition
        directory = join(log_dir.path, name or partition_folder(topic, partition))
        self._work.leave(directory)
        try:
            if (topic, partition) in log_dir.gone:
                clear_offsets(self.files, log_dir)
            log = create_log(
                log_dir.environment,
                directory,
                topic,
                partition,
                wanted.topic_id,
                wanted.config,
                start_offset=start_offset,
            )
        except OSError as error:
            if not isinstance(error, FileExistsError):  # a log nobody knows of, which is no fault of the disk
                log_dir.environment.write_failed(error)
                self._remove_half_made(directory)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot create the log of {topic}-{partition}: {error}"
            ) from error
        return log

    def _remove_half_made(self, directory: str) -> None:
        """Clear the way for another attempt, but never remove what may hold records."""
        try:
            entries = self.files.entries(directory, sizes_of=(LOG_SUFFIX,))
            if not any(entry.name.endswith(LOG_SUFFIX) and entry.size for entry in entries):
                self.files.remove_tree(directory)
        except OSError as error:
            logger.debug("%s cannot be removed: %s", directory, error)

    def _remove(self, log: PartitionLog) -> None:
        """Rename a log's folder soon, and remove it later."""
        name = set_aside_folder(log.topic, log.partition, random_id(), "delete")
        aside = join(directory_name(log.directory), name)
        log.retire()
        self.dir_of(log).gone.add((log.topic, log.partition))
        self._work.remove_folder(log.directory, aside, log.config.file_delete_delay_ms, log.settle)

    def _keep_as_stray(self, log: PartitionLog) -> None:
        log.retire()
        log.settle()
        self.dir_of(log).gone.add((log.topic, log.partition))
        name = set_aside_folder(log.topic, log.partition, random_id(), "stray")
        aside = join(directory_name(log.directory), name)
        try:
            self.files.rename(log.directory, aside)
        except OSError as error:
            logger.error(
                "%s, which the metadata does not know, cannot be set aside: %s", log.directory, error
            )
        else:
            logger.warning("The metadata does not know %s: kept as %s", log.directory, aside)

    # --- failures ---------------------------------------------------------------------------------

    def _disk_failed(self, log_dir: LogDir, error: OSError) -> None:
        """Take a directory out of service. Any thread."""
        if log_dir.error is not None:
            return
        log_dir.error = error
        logger.error("Stopping serving logs in dir %s: %s", log_dir.path, error)
        for log in list(self.all_logs()):
            if directory_name(log.directory) == log_dir.path:
                log.offline = error
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell_of_failure, log_dir)

    def _tell_of_failure(self, log_dir: LogDir) -> None:
        """Wake who waits for one of the lost logs, and tell the owner."""
        for log in self.logs_in(log_dir):
            log.wake_waiting()
            move = self.moves.get((log.topic, log.partition))
            if move is not None and move.future is log:
                move.source.compaction.resume()
                del self.moves[log.topic, log.partition]
        self.on_dir_failure(log_dir)

    def _release_files(self) -> None:
        """Too many files are open: give all descriptors back, they return one by one. Any thread."""
        self._warn(
            "", "open files", "Too many open files: closing those of all logs; raise the limit (ulimit -n)"
        )
        self.release_files()

    def release_files(self) -> None:
        """Give the descriptors of all logs back; they return one by one. Any thread."""
        for log in list(self.all_logs()):
            log.release_files()

    def _warn(self, subject: str, kind: str, text: str) -> None:
        """Log a warning, unless there was one of its kind just now. Any thread."""
        self._repeated_lines.log(logging.WARNING, kind, subject, text)
