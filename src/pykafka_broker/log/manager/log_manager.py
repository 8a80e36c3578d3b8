"""The logs of one broker: opened at the start, made and deleted as the metadata says, worked on periodically,
and closed.

Order of a start: `dirs.lock`, `dirs.check_meta` (directories.py), `open_all`, then `create`/`get`/`delete`,
`tick` about once a second, and `close`. The caller owns the clock and the threads, which are
injected; everything that may wait for a disk goes through the latter.

    registry.py            which logs there are
    log_folders.py         their folders: made, set aside, removed
    placement.py           which directory a new log gets
    log_creation.py        logs made as the metadata says
    log_moves.py           logs that move between directories; future_log.py is one move
    directory_failures.py  disks that fail or are full, descriptors that run out
    retention_rounds.py, periodic_writes.py, deferred_files.py
                           periodic work, and files that appends wait for

The data of a log that the metadata does not know is never deleted: its folder gets a name that ends in
`-stray`, for a person to look at. So a lost metadata log costs no topic's data.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from pykafka_broker.log.check.scrubber import Scrubber, ThreadScrubber
from pykafka_broker.log.cleaner.cleaner import CleaningWorker, LogCleaner, ThreadWorker
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import encode_clean_shutdown
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.file_work import REMOVALS, FileWork
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.full_disks import FullDisks
from pykafka_broker.log.disk.names import CLEAN_SHUTDOWN_FILE
from pykafka_broker.log.disk.spaces import Spaces
from pykafka_broker.log.manager.deferred_files import DeferredFiles
from pykafka_broker.log.manager.directory_failures import DirectoryFailures
from pykafka_broker.log.manager.log_creation import LogCreation
from pykafka_broker.log.manager.log_folders import LogFolders, WantedLog
from pykafka_broker.log.manager.log_moves import LogMoves
from pykafka_broker.log.manager.periodic_writes import PeriodicWrites
from pykafka_broker.log.manager.placement import Placement
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.log.manager.retention_rounds import RetentionRounds
from pykafka_broker.log.manager.settings import (
    DEFAULT_LOG_SETTINGS,
    WORKERS_IN_THREADS,
    LogSettings,
    LogThreads,
    LogWorkers,
)
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.recovery.open_directories import open_directory
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey

logger = logging.getLogger("kafka.log.LogManager")

CLOSING_THREADS = 4
#: Files and indexes not used between two checks are given back.
IDLE_CHECK_MS = 60_000


class LogManager:
    """The logs of one broker, by topic and partition. Event loop only, except where said."""

    def __init__(
        self,
        files: FileSystem,
        dirs: LogDirs,
        threads: LogThreads,
        *,
        clock: Clock,
        settings: LogSettings = DEFAULT_LOG_SETTINGS,
        workers: LogWorkers = WORKERS_IN_THREADS,
        on_dir_failure: Callable[[LogDir], None] = lambda log_dir: None,
    ) -> None:
        self.files = files
        self.dirs = dirs
        self.intervals = settings.intervals
        #: Broker epoch in the clean shutdown markers; -1 if the last stop was not clean.
        self.previous_broker_epoch = -1
        self._threads = threads
        self._clock = clock
        self._recovery_threads = settings.recovery_threads
        self._on_dir_failure = on_dir_failure
        self._due: dict[str, int] = {}
        self._is_open = False

        self._registry = LogRegistry()
        self._work = FileWork(files, run_on_disk=threads.run_on_disk, monotonic_ms=clock.monotonic_ms)
        self._failures = DirectoryFailures(
            files,
            self._registry,
            self._work,
            monotonic_ms=clock.monotonic_ms,
            on_failure=self._dir_failed,
        )
        for log_dir in dirs.all:
            log_dir.environment = self._failures.environment(log_dir)
        #: The room in the directories.
        self.spaces = Spaces(files, self._work.run_later)
        self._folders = LogFolders(files, dirs, self._work)
        self._placement = Placement(dirs, self._registry)
        #: Logs on their way into another directory.
        self.moves = LogMoves(files, dirs, self._registry, self._folders, self._failures, threads)
        self._creation = LogCreation(
            files,
            self._registry,
            self._folders,
            self._placement,
            self._failures,
            run_awaited=threads.run_awaited,
            set_aside=self._set_aside,
        )
        #: Makes the files that appends miss.
        self.deferred_files = DeferredFiles(threads.run_awaited)
        self._retention = RetentionRounds(self._registry, self._work, self.deferred_files)
        #: Flushes, and writes checkpoints.
        self.writes = PeriodicWrites(files, dirs, self._registry, self._work)
        #: Compacts logs in the background.
        self.cleaner = LogCleaner(
            lambda: list(self._registry.served.values()),
            settings.cleaner,
            run_blocking=threads.run_blocking,
            run_cleaning=threads.run_long,
            new_worker=workers.new_cleaner or self._thread_worker,
            clock=clock,
            checkpoint=self.writes.checkpoint_cleaned,
        )
        #: Finds damage in the background.
        self.scrubber = Scrubber(
            lambda: self._registry.served.values(),
            settings.scrub,
            run_blocking=threads.run_blocking,
            run_scrubbing=threads.run_long,
            new_worker=workers.new_scrubber or partial(ThreadScrubber, files),
        )

    def _thread_worker(self) -> CleaningWorker:
        """A cleaner in the worker thread without a speed limit: the injected clock cannot measure a rate."""
        return ThreadWorker(
            self.files, now_s=lambda: self._clock.monotonic_ms() / 1000, sleep=lambda seconds: None
        )

    # --- which logs there are ---------------------------------------------------------------------

    @property
    def logs(self) -> dict[PartitionKey, PartitionLog]:
        """The logs that are served."""
        return self._registry.served

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._registry.served.values())

    def __len__(self) -> int:
        return len(self._registry.served)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, None if there is none here."""
        return self._registry.served.get((topic, partition))

    def logs_in(self, log_dir: LogDir) -> list[PartitionLog]:
        """The logs that lie in a directory, and those on their way into it."""
        return self._registry.in_dir(log_dir)

    def space(self, log_dir: LogDir) -> tuple[int, int]:
        """(total bytes, bytes a process may still use) of the directory's volume. May wait for the disk.

        Raises:
            OSError: the volume cannot be asked.
        """
        return self.files.space(log_dir.path)

    def dir_of(self, log: PartitionLog) -> LogDir:
        """The directory a log lies in."""
        return self._folders.dir_of(log)

    # --- start ------------------------------------------------------------------------------------

    async def open_all(self, config_for: Callable[[str], LogConfig] = lambda topic: LogConfig()) -> None:
        """Open every partition folder, with recovery where the last stop was not clean.

        `config_for` gives the configuration of a topic's logs.

        Raises:
            LogDirError: the metadata directory, or every directory for partitions, failed.
        """
        self._failures.tell_on(asyncio.get_running_loop())
        started_ms = self._clock.monotonic_ms()
        futures: list[PartitionLog] = []
        config_for = cache(config_for)  # once for all partitions of a topic
        online = [log_dir for log_dir in self.dirs.all if log_dir.is_online]
        epochs = [await self._open_dir(log_dir, config_for, futures) for log_dir in online]
        self.previous_broker_epoch = epochs[0] if epochs and len(set(epochs)) == 1 else -1
        self.dirs.require()
        for future in futures:
            self.moves.resume(future)
        self._is_open = True
        if self.logs:
            logger.info("Loaded %d logs in %d ms", len(self.logs), self._clock.monotonic_ms() - started_ms)

    async def _open_dir(
        self, log_dir: LogDir, config_for: Callable[[str], LogConfig], futures: list[PartitionLog]
    ) -> int:
        """Open the logs in a directory; return the broker epoch of its clean shutdown marker."""
        try:
            opened = await open_directory(
                self.files,
                log_dir,
                config_for=config_for,
                run_blocking=self._threads.run_blocking,
                clock=self._clock,
                recovery_threads=self._recovery_threads,
            )
        except OSError as error:
            self._failures.failed(log_dir, error)
            return -1
        for path in opened.deleted:
            self._work.bury_folder(path, 0)
        served = self._registry.served
        for log in opened.logs:
            key = (log.topic, log.partition)
            served[key] = self.moves.better_of(served[key], log) if key in served else log
        futures += opened.futures
        return opened.broker_epoch

    # --- made, deleted and set aside --------------------------------------------------------------

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        directory_id: bytes | None = None,
        is_new: bool = True,
        may_begin_anew: bool = False,
        in_first_epoch: bool = False,
    ) -> PartitionLog:
        """The log of a partition, made if there is none. Waits for the disk. See `WantedLog`.

        A log with another topic id is set aside. A log without `partition.metadata` is set aside if it
        `may_begin_anew`; otherwise it is recognised by its name and gets the file back. A new log goes to the
        directory `directory_id`, or to the one with the fewest logs.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses, or the log may be in a directory that is out of
                service (unless `is_new`) or missing (unless `may_begin_anew`).
        """
        wanted = WantedLog(
            topic, partition, topic_id, config, directory_id, is_new, may_begin_anew, in_first_epoch
        )
        return self._creation.create(wanted)

    async def create_all(self, wanted: Sequence[WantedLog]) -> list[PartitionLog | KafkaError]:
        """As `create` for each, without waiting for the disk: a log, or the error."""
        return await self._creation.create_all(wanted)

    def prefer(self, topic: str, partition: int, log_dir: LogDir) -> None:
        """If the partition ever comes to this broker, make its log in this directory."""
        self._placement.prefer(topic, partition, log_dir)

    def delete(self, topic: str, partition: int) -> bool:
        """Take a log out of service now and wake the readers that wait for it.

        A worker thread renames its folder, which is removed `file.delete.delay.ms` later.
        """
        self.moves.cancel(topic, partition)
        self._creation.cancel(topic, partition)
        if (orphan := self._registry.orphans.pop((topic, partition), None)) is not None:
            self._folders.remove(orphan)
        log = self._registry.served.pop((topic, partition), None)
        if log is None:
            return False
        self._folders.remove(log)
        return True

    def set_strays_aside(self, is_wanted: Callable[[PartitionLog], bool]) -> list[PartitionLog]:
        """Take the logs that the metadata does not know out of service, keep their data, and return them."""
        strays = [log for log in self if not is_wanted(log)]
        for log in strays:
            self._set_aside(log)
        orphans = self._registry.orphans
        for key, orphan in tuple(orphans.items()):
            if not is_wanted(orphan):
                self._folders.keep_as_stray(orphans.pop(key))
        return strays

    def _set_aside(self, log: PartitionLog) -> None:
        """Take a log out of service and keep its data; a copy that a move was filling is removed."""
        self.moves.cancel(log.topic, log.partition)
        del self._registry.served[log.topic, log.partition]
        self._folders.keep_as_stray(log)

    # --- failing disks, and descriptors -----------------------------------------------------------

    @property
    def full_disks(self) -> FullDisks:
        """The directories that refuse writes for now."""
        return self._failures.full_disks

    def keep_open(self, new_logs: int) -> None:
        """Let `new_logs` new logs keep their descriptors until they are found idle."""
        self._creation.max_open = new_logs

    def release_files(self) -> None:
        """Close the files of all logs; each opens again at its next use. Any thread."""
        self._failures.release_files()

    def write_failed(self, log: PartitionLog, error: OSError) -> None:
        """The disk of a log has refused work on its files."""
        environment = self.dir_of(log).environment
        assert environment is not None
        environment.write_failed(error)

    def _dir_failed(self, log_dir: LogDir) -> None:
        """A directory went out of service: wake the requests that wait for its logs, and tell the owner."""
        for log in self.logs_in(log_dir):
            log.state.wake_waiting()
        self.moves.give_up_in(log_dir)
        self._on_dir_failure(log_dir)

    # --- periodic work ----------------------------------------------------------------------------

    async def tick(self) -> None:
        """Do whatever is due; call it about once a second.

        Records expire by the wall clock; everything else is due by the monotonic one.
        """
        now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        intervals, writes = self.intervals, self.writes
        initial_ms = intervals.initial_delay_ms
        await self._work.in_each(REMOVALS, self._work.due_removals(now_ms))
        if self._is_due("retention", now_ms, intervals.retention_check_ms, initial_ms):
            for log_dir in self.dirs.online:
                self._retention.look_in(log_dir, wall_ms)
        for log_dir in self.dirs.all:
            self.full_disks.try_again(log_dir, now_ms)
        self.cleaner.tick(now_ms)
        self.scrubber.tick(now_ms)
        if self._is_due("producers", now_ms, intervals.producer_expiration_check_ms):
            for log in self:
                log.state.expire_producers(wall_ms)
        if self._is_due("idle files", now_ms, IDLE_CHECK_MS):
            for log in self:
                log.reader.release_idle()
            self._creation.idle_are_closed()
        if self._is_due("flush", now_ms, min(intervals.flush_check_ms, 1000)):
            await writes.flush_due(now_ms)
        if self._is_due("recovery points", now_ms, intervals.recovery_point_checkpoint_ms, initial_ms):
            await writes.checkpoint_recovery_points()
        if self._is_due("log starts", now_ms, intervals.log_start_checkpoint_ms, initial_ms):
            await writes.checkpoint_log_starts()
        if self._is_due("high watermarks", now_ms, intervals.high_watermark_checkpoint_ms):
            await writes.checkpoint_high_watermarks()

    def _is_due(self, what: str, now_ms: int, interval_ms: int, initial_ms: int | None = None) -> bool:
        """True once per interval; the first time one interval, or `initial_ms`, after the first call."""
        due_ms = self._due.setdefault(what, now_ms + (interval_ms if initial_ms is None else initial_ms))
        if now_ms < due_ms:
            return False
        self._due[what] = now_ms + interval_ms
        return True

    # --- stop -------------------------------------------------------------------------------------

    async def close(self, broker_epoch: int = -1, *, clean: bool = True) -> None:
        """Close every log in order; leave the clean shutdown marker if all went well.

        No marker is left if some logs had not been opened, or if not `clean`: then the metadata log could not
        be closed in order.
        """
        await self.cleaner.close()
        await self.scrubber.close()
        while under_way := self._file_work():
            await asyncio.wait(under_way)
        await self._work.finish()
        for log_dir in self.dirs.all if self._is_open else ():
            if log_dir.is_online:
                await self._close_dir(log_dir, broker_epoch, clean)
        self._registry.clear()
        self.dirs.unlock()

    @property
    def file_jobs(self) -> int:
        """The number of jobs in worker threads that make, rename or remove files."""
        return self._work.jobs

    def _file_work(self) -> list[asyncio.Future[Any]]:
        """Work that makes files and has not ended."""
        return [*self._retention.under_way, *self.deferred_files.under_way, *self._creation.makers]

    async def _close_dir(self, log_dir: LogDir, broker_epoch: int, others_are_clean: bool) -> None:
        logs = self.logs_in(log_dir)

        def close_some(some: list[PartitionLog]) -> bool:
            return False not in [log.close() for log in some]

        # Closing waits for the disk, which serves several threads faster than one.
        shares = [logs[i::CLOSING_THREADS] for i in range(CLOSING_THREADS)]
        jobs = [self._threads.run_blocking(partial(close_some, share)) for share in shares if share]
        clean = False not in await asyncio.gather(*jobs)
        await self.writes.checkpoint_recovery_points()
        await self.writes.checkpoint_log_starts()
        await self.writes.checkpoint_high_watermarks()
        if clean and others_are_clean and log_dir.is_online:
            marker = join(log_dir.path, CLEAN_SHUTDOWN_FILE)
            data = encode_clean_shutdown(broker_epoch)
            try:
                await self._threads.run_blocking(lambda: self.files.replace_file(marker, data, sync=True))
            except OSError as error:  # a full disk, perhaps
                logger.warning("%s cannot be written, the next start recovers the logs: %s", marker, error)
