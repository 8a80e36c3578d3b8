"""The logs of one broker: made, found and deleted as the metadata says, and worked on periodically. Their
folders: `folders`; how they move from one directory to another: `moves`.

Order of a start: `dirs.lock`, `dirs.check_meta` (directories.py), `open_all`, then `create`/`get`/`delete`,
`tick` about once a second, and `close`. The caller owns the clock and the threads: `now_ms` and
`run_blocking` are injected, and what may wait for a disk goes through the latter.

Apache Kafka stops for a lost `partition.metadata`; here it is written again once the metadata image has told
the topic id (`create`).

What the metadata does not know is never deleted: its folder gets a name that ends in `-stray`, for a person
to look at. So a lost metadata log costs no topic's data.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from pykafka_broker.log.check.scrubber import (
    DEFAULT_SCRUB_SETTINGS,
    Scrubber,
    ScrubSettings,
    ScrubWorker,
    ThreadScrubber,
)
from pykafka_broker.log.cleaner.cleaner import CleanerSettings, LogCleaner, ThreadWorker, Worker
from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.disk.checkpoints import (
    PartitionKey,
    encode_clean_shutdown,
    encode_partition_metadata,
    is_reserved_id,
    uuid_text,
)
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.file_work import REMOVALS, RunBlocking, RunOnDisk
from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    partition_folder,
)
from pykafka_broker.log.manager.folders import WantedLog
from pykafka_broker.log.manager.moves import MovingLogs
from pykafka_broker.log.partition.partition_log import NamesDue, PartitionLog
from pykafka_broker.log.recovery.offset_checkpoints import changed_offsets, write_offsets
from pykafka_broker.log.recovery.open_directories import UNKNOWN_TOPIC_ID, open_directory
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


class Intervals(NamedTuple):
    """How often periodic work is due, in milliseconds; Kafka's broker settings and defaults.

    Retention, flushes and the checkpoints that a recovery needs are due for the first time after
    `initial_delay_ms`.
    """

    initial_delay_ms: int = 30_000
    retention_check_ms: int = 300_000
    flush_check_ms: int = LONG_MAX
    recovery_point_checkpoint_ms: int = 60_000
    log_start_checkpoint_ms: int = 60_000
    high_watermark_checkpoint_ms: int = 5_000
    producer_expiration_check_ms: int = 600_000


DEFAULT_INTERVALS = Intervals()
DEFAULT_CLEANER_SETTINGS = CleanerSettings()

CLOSING_THREADS = 4
#: A disk that makes no log for so long stands still: the topics of others do not wait for it.
MAKING_PATIENCE_S = 2.0
#: Partitions that are not here for which a directory is remembered; the oldest is forgotten first.
MAX_PREFERRED = 10_000
#: Files and indexes not used between two checks are given back.
IDLE_CHECK_MS = 60_000


class LogManager(MovingLogs):
    """The logs of one broker, by topic and partition. Event loop only, except where said."""

    def __init__(
        self,
        files: FileSystem,
        log_dirs: list[str],
        *,
        run_blocking: RunBlocking,
        run_on_disk: RunOnDisk | None = None,
        run_awaited: RunOnDisk | None = None,
        now_ms: Callable[[], int],
        config_for: Callable[[str], LogConfig] = lambda topic: LogConfig(),
        intervals: Intervals = DEFAULT_INTERVALS,
        recovery_threads: int = 2,
        on_dir_failure: Callable[[LogDir], None] = lambda log_dir: None,
        metadata_dir: str | None = None,
        cleaner_settings: CleanerSettings = DEFAULT_CLEANER_SETTINGS,
        new_cleaning_worker: Callable[[], Worker] | None = None,
        run_cleaning: RunBlocking | None = None,
        scrub_settings: ScrubSettings = DEFAULT_SCRUB_SETTINGS,
        new_scrub_worker: Callable[[], ScrubWorker] | None = None,
    ) -> None:
        super().__init__(
            files,
            LogDirs(files, log_dirs, metadata_dir),
            run_blocking=run_blocking,
            run_on_disk=run_on_disk,
            now_ms=now_ms,
            on_dir_failure=on_dir_failure,
        )
        #: As `run_on_disk`, for what producers and creators of topics wait for.
        self._run_awaited = run_awaited or self._run_on_disk
        #: Where partitions shall be made that are not here yet.
        self._preferred: dict[PartitionKey, LogDir] = {}
        self.intervals = intervals
        #: Broker epoch in the clean shutdown markers; -1 if the last stop was not clean.
        self.previous_broker_epoch = -1
        self._config_for = config_for
        self._recovery_threads = recovery_threads
        self._due: dict[str, int] = {}
        self._last_flush_ms: dict[PartitionKey, int] = {}
        self._is_open = False
        self._making: set[asyncio.Future[Any]] = set()
        #: How many logs threads have made.
        self._made = 0
        #: Logs that a thread is making, and the ids of their topics.
        self._being_made: dict[PartitionKey, bytes] = {}
        #: Logs that wait for a file to be made.
        self._names_of: dict[PartitionLog, asyncio.Future[None]] = {}
        #: What goes on when they have it.
        self._naming: set[asyncio.Future[None]] = set()
        #: Compacts logs in the background.
        self.cleaner = LogCleaner(
            lambda: list(self.logs.values()),
            cleaner_settings,
            run_blocking=run_blocking,
            run_cleaning=run_cleaning or run_blocking,
            new_worker=new_cleaning_worker or self._thread_worker,
            now_ms=now_ms,
            checkpoint=self.checkpoint_cleaned,
        )
        #: Finds damage in the background.
        self.scrubber = Scrubber(
            lambda: self.logs.values(),
            scrub_settings,
            run_blocking=run_blocking,
            run_scrubbing=run_cleaning or run_blocking,
            new_worker=new_scrub_worker or partial(ThreadScrubber, files),
        )

    # --- start ------------------------------------------------------------------------------------

    async def open_all(self) -> None:
        """Open every partition folder, with recovery where the last stop was not clean.

        Raises:
            LogDirError: too many directories failed over it.
        """
        self._loop = asyncio.get_running_loop()
        started_ms = self._now_ms()
        futures: list[PartitionLog] = []
        epochs = [await self._open_dir(log_dir, futures) for log_dir in self.dirs.all if log_dir.is_online]
        self.previous_broker_epoch = epochs[0] if epochs and len(set(epochs)) == 1 else -1
        self.dirs.require()
        for future in futures:
            self._go_on_with(future)
        self._is_open = True
        if self.logs:
            logger.info("Loaded %d logs in %d ms", len(self.logs), self._now_ms() - started_ms)

    async def _open_dir(self, log_dir: LogDir, futures: list[PartitionLog]) -> int:
        """Open what is in a directory; the broker epoch of its clean shutdown marker."""
        try:
            opened = await open_directory(
                self.files,
                log_dir,
                config_for=cache(self._config_for),  # once for all partitions of a topic
                run_blocking=self._run_blocking,
                now_ms=self._now_ms,
                recovery_threads=self._recovery_threads,
            )
        except OSError as error:
            self._disk_failed(log_dir, error)
            return -1
        for path in opened.deleted:
            self._work.bury_folder(path, 0)
        for log in opened.logs:
            key = (log.topic, log.partition)
            self.logs[key] = self._one_of(self.logs[key], log) if key in self.logs else log
        futures += opened.futures
        return opened.broker_epoch

    # --- logs -------------------------------------------------------------------------------------

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        directory_id: bytes | None = None,
        is_new: bool = True,
    ) -> PartitionLog:
        """The log of a partition, made if there is none; one left by a topic of another id is set aside.

        A log whose partition.metadata was lost is recognised by its name and gets the file back. A new one
        goes to the directory `directory_id`, or to the one with the fewest logs. Waits for the disk.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR if the disk refuses, or if the partition is not `is_new`, so that
                its log may be in a directory that is out of service.
        """
        wanted = WantedLog(topic, partition, topic_id, config, directory_id, is_new)
        log = self._existing(wanted)
        if log is None:
            log = self._make(wanted, self._dir_for_new_log(wanted, self._log_counts()))
            self.logs[topic, partition] = log
        return log

    async def create_all(self, wanted: Sequence[WantedLog]) -> list[PartitionLog | KafkaError]:
        """As `create` for each, with the file work of new logs in worker threads: a log, or why there is
        none.

        Nobody waits long for a disk that stands still: what it makes in the end is there when it is asked
        for again.
        """
        made: dict[int, PartitionLog | KafkaError] = {}
        missing: dict[LogDir, list[WantedLog]] = {}
        counts = self._log_counts()
        for number, one in enumerate(wanted):
            try:
                log = self._existing(one)
                if log is None:
                    log_dir = self._dir_for_new_log(one, counts)
                    counts[log_dir.path] += 1
                    missing.setdefault(log_dir, []).append(one)
                else:
                    made[number] = log
            except KafkaError as error:
                made[number] = error

        makers = [asyncio.ensure_future(self._make_all(wanted, dir_)) for dir_, wanted in missing.items()]
        self._making.update(makers)
        for maker in makers:
            maker.add_done_callback(self._making.discard)
        await self._wait_for(makers)
        refused = {key: error for maker in makers if maker.done() for key, error in maker.result().items()}
        for number, one in enumerate(wanted):
            if number not in made:
                key = one.topic, one.partition
                made[number] = self.logs.get(key) or refused.get(key) or _still_made(one)
        return [made[number] for number in range(len(wanted))]

    async def _wait_for(self, makers: Sequence[asyncio.Future[Any]]) -> None:
        """Return when all logs are made, or none was for a while."""
        pending: set[asyncio.Future[Any]] = set(makers)
        made = -1
        while pending and made != self._made:
            made = self._made
            _, pending = await asyncio.wait(pending, timeout=MAKING_PATIENCE_S)

    async def _make_all(self, wanted: Sequence[WantedLog], log_dir: LogDir) -> dict[PartitionKey, KafkaError]:
        """Make logs in a directory, and take them into service; those that could not be made."""
        refused: dict[PartitionKey, KafkaError] = {}
        made: list[PartitionLog] = []

        def make() -> None:
            for one in wanted:
                try:
                    made.append(self._make(one, log_dir))
                    self._made += 1
                except KafkaError as error:
                    refused[one.topic, one.partition] = error

        topic_ids = {(one.topic, one.partition): one.topic_id for one in wanted}
        self._being_made.update(topic_ids)
        try:
            await self._run_awaited(log_dir.path, make)
        finally:
            for log in made:
                key = log.topic, log.partition
                if self._being_made.get(key) == log.topic_id and key not in self.logs:
                    self.logs[key] = log
                else:  # deleted meanwhile
                    self._remove(log)
            for key, topic_id in topic_ids.items():
                if self._being_made.get(key) == topic_id:
                    del self._being_made[key]
        return refused

    def _existing(self, wanted: WantedLog) -> PartitionLog | None:
        """The log that is there already, in line with what is wanted."""
        log = self.logs.get((wanted.topic, wanted.partition)) or self._only_copy(wanted)
        if log is None:
            if (wanted.topic, wanted.partition) in self._being_made:
                raise _still_made(wanted)
            return None
        if log.topic_id == UNKNOWN_TOPIC_ID:
            logger.warning("%s: partition.metadata was lost, written again", log.directory)
            path = join(log.directory, PARTITION_METADATA)
            self.files.replace_file(path, encode_partition_metadata(wanted.topic_id), sync=False)
            log.topic_id = wanted.topic_id
        if log.topic_id == wanted.topic_id:
            log.config = wanted.config
            return log
        self._set_aside(log)
        return None

    def prefer(self, topic: str, partition: int, log_dir: LogDir) -> None:
        """Make the log of a partition in this directory, should it ever come here."""
        self._preferred.pop((topic, partition), None)
        while len(self._preferred) >= MAX_PREFERRED:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic, partition] = log_dir

    def _only_copy(self, wanted: WantedLog) -> PartitionLog | None:
        """What a move had copied of a log that is not here, put in its place; unless that log is in a
        directory that is away, and whole.
        """
        key = wanted.topic, wanted.partition
        copy = self._copies.get(key)
        if copy is None or copy.offline is not None:
            return None
        if self._is_elsewhere(wanted.directory_id):
            logger.warning("%s waits for the log that it is filled from", copy.directory)
            return None
        logger.warning("%s is all there is of %s: it is served as it is", copy.directory, copy.name)
        try:
            copy.rename_folder(join(directory_name(copy.directory), copy.name))
        except OSError as error:
            self._disk_failed(self.dir_of(copy), error)
            return None
        self.logs[key] = self._copies.pop(key)
        return copy

    def _dir_for_new_log(self, wanted: WantedLog, counts: Mapping[str, int]) -> LogDir:
        """The directory it shall have, by a client's or the controller's word, or the one with the fewest
        logs; `counts` is by path.
        """
        if not wanted.is_new and not all(log_dir.is_online for log_dir in self.dirs.of_partitions):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"The log of {wanted.topic}-{wanted.partition} may be in a directory that is out of service",
            )
        if not wanted.is_new and self._is_elsewhere(wanted.directory_id):
            folder = partition_folder(wanted.topic, wanted.partition)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Its log is in a directory that is not among log.dirs (directory.id "
                f"{uuid_text(wanted.directory_id or b'')}). Bring that directory back and start again; if it "
                f"is lost, make an empty folder {folder} in one of log.dirs to begin anew, or delete the "
                "topic.",
            )
        online = self.dirs.online
        preferred = self._preferred.pop((wanted.topic, wanted.partition), None)
        if preferred is not None and preferred.is_online:
            return preferred
        for log_dir in online:
            if log_dir.directory_id == wanted.directory_id:
                return log_dir
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No log directory is in service")
        if all(log_dir.is_cordoned for log_dir in online):  # since the partition was assigned to this node
            return online[0]
        return min(
            (log_dir for log_dir in online if not log_dir.is_cordoned),
            key=lambda log_dir: counts[log_dir.path],
        )

    def _is_elsewhere(self, directory_id: bytes | None) -> bool:
        """Whether this is the id of a directory, and of none that is here."""
        known = {log_dir.directory_id for log_dir in self.dirs.of_partitions}
        return directory_id is not None and not is_reserved_id(directory_id) and directory_id not in known

    def _log_counts(self) -> Counter[str]:
        """How many logs each directory has, by path."""
        if len(self.dirs.of_partitions) == 1:  # nothing to choose from, so nothing to count
            return Counter()
        return Counter(directory_name(log.directory) for log in self.all_logs())

    def delete(self, topic: str, partition: int) -> bool:
        """Take a log out of service now and off the disk later; readers that wait for it are woken.

        Its folder is renamed in a worker thread, and removed `file.delete.delay.ms` later.
        """
        self.cancel_move(topic, partition)
        self._being_made.pop((topic, partition), None)
        if (copy := self._copies.pop((topic, partition), None)) is not None:
            self._remove(copy)
        log = self.logs.pop((topic, partition), None)
        if log is None:
            return False
        self._remove(log)
        return True

    def set_strays_aside(self, is_wanted: Callable[[PartitionLog], bool]) -> list[PartitionLog]:
        """Take the logs that the metadata does not know out of service and keep their data; those logs."""
        strays = [log for log in self.logs.values() if not is_wanted(log)]
        for log in strays:
            self._set_aside(log)
        for key, copy in tuple(self._copies.items()):
            if not is_wanted(copy):
                self._keep_as_stray(self._copies.pop(key))
        return strays

    def _set_aside(self, log: PartitionLog) -> None:
        """Take a log out of service and keep its data; a copy that was on its way goes."""
        self.cancel_move(log.topic, log.partition)
        del self.logs[log.topic, log.partition]
        self._keep_as_stray(log)

    def _thread_worker(self) -> Worker:
        """Cleans in the worker thread, at whatever speed: the injected clock is no measure for a rate."""
        return ThreadWorker(self.files, now_s=lambda: self._now_ms() / 1000, sleep=lambda seconds: None)

    # --- periodic work ----------------------------------------------------------------------------

    async def tick(self, now_ms: int) -> None:
        """Do whatever is due; call it about once a second."""
        intervals = self.intervals
        initial_ms = intervals.initial_delay_ms
        await self._work.in_each(REMOVALS, self._work.due_removals(now_ms))
        if self._is_due("retention", now_ms, intervals.retention_check_ms, initial_ms):
            for log_dir in self.dirs.online:
                self._work.run_later(log_dir.path, partial(self._look_for_expired, log_dir, now_ms))
        for log_dir in self.dirs.all:
            self.full_disks.try_again(log_dir, now_ms)
        self.cleaner.tick(now_ms)
        self.scrubber.tick(now_ms)
        if self._is_due("producers", now_ms, intervals.producer_expiration_check_ms):
            for log in self:
                log.expire_producers(now_ms)
        if self._is_due("idle files", now_ms, IDLE_CHECK_MS):
            for log in self:
                log.release_idle()
        if self._is_due("flush", now_ms, min(intervals.flush_check_ms, 1000)):
            await self.flush_due(now_ms)
        if self._is_due("recovery points", now_ms, intervals.recovery_point_checkpoint_ms, initial_ms):
            await self.checkpoint_recovery_points()
        if self._is_due("log starts", now_ms, intervals.log_start_checkpoint_ms, initial_ms):
            await self.checkpoint_log_starts()
        if self._is_due("high watermarks", now_ms, intervals.high_watermark_checkpoint_ms):
            await self.checkpoint_high_watermarks()

    def _is_due(self, what: str, now_ms: int, interval_ms: int, initial_ms: int | None = None) -> bool:
        """True once per interval; the first time one interval, or `initial_ms`, after the first call."""
        due_ms = self._due.setdefault(what, now_ms + (interval_ms if initial_ms is None else initial_ms))
        if now_ms < due_ms:
            return False
        self._due[what] = now_ms + interval_ms
        return True

    def _look_for_expired(self, log_dir: LogDir, now_ms: int) -> None:
        """Find the logs of a directory of which something has expired; the event loop removes it. Worker
        thread: the age of a segment stands in a file.
        """
        due = []
        for log in list(self.logs.values()):
            if directory_name(log.directory) == log_dir.path and log.offline is None:
                try:
                    if log.expired(now_ms).segments:
                        due.append(log)
                except (OSError, KafkaError) as error:
                    logger.error("%s: retention failed: %s", log.name, error)
        if due and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._remove_expired, now_ms, due)

    def _remove_expired(self, now_ms: int, logs: Iterable[PartitionLog]) -> None:
        """Apply retention to these logs without waiting for a disk."""
        for log in logs:
            if log.closed or log.offline is not None:
                continue
            try:
                log.apply_retention(now_ms, defers_names=True)
            except NamesDue as due:
                task = asyncio.ensure_future(self._begin_anew(due, now_ms))
                self._naming.add(task)
                task.add_done_callback(self._naming.discard)
            except (OSError, KafkaError) as error:
                logger.error("%s: retention failed: %s", log.name, error)

    async def _begin_anew(self, due: NamesDue, now_ms: int) -> None:
        """Remove all that a log has, once there is another segment."""
        try:
            await self.make_names(due)
        except KafkaError as error:
            logger.warning("%s: what has expired stays for now: %s", due.log.name, error.message)
        self.apply_retention(now_ms, [due.log])

    async def make_names(self, due: NamesDue) -> None:
        """Have a thread make what an append has missed; it is to be repeated then.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses, or the partition was deleted.
        """
        log: PartitionLog = due.log
        task = self._names_of.get(log)
        if task is None:
            log.makes_names = True
            task = self._names_of[log] = asyncio.ensure_future(self._make_names(log, due.base_offset))
        await asyncio.shield(task)

    async def _make_names(self, log: PartitionLog, base_offset: int | None) -> None:
        try:
            new = await self._run_awaited(directory_name(log.directory), partial(log.make_names, base_offset))
            if new is not None and not log.closed:
                log.adopt(new)
        except OSError as error:
            raise log.names_refused(error) from error
        finally:
            log.makes_names = False
            del self._names_of[log]

    def apply_retention(self, now_ms: int, logs: Iterable[PartitionLog] | None = None) -> int:
        """Apply retention to these logs, or to every log; how many segments went."""
        removed = 0
        for log in list(self if logs is None else logs):
            if log.closed or log.offline is not None:
                continue
            try:
                removed += log.apply_retention(now_ms)
            except (OSError, KafkaError) as error:
                logger.error("%s-%d: retention failed: %s", log.topic, log.partition, error)
        return removed

    async def flush_due(self, now_ms: int) -> None:
        """Flush the logs whose `flush.ms` has passed since their last flush."""
        due = []
        for key, log in self.logs.items():
            if log.config.flush_ms == LONG_MAX or log.unflushed_messages == 0:
                continue
            if not self._work.is_free("flush", directory_name(log.directory)):
                continue
            if now_ms - self._last_flush_ms.setdefault(key, now_ms) >= log.config.flush_ms:
                self._last_flush_ms[key] = now_ms
                due.append(log)
        jobs = {
            log_dir.path: partial(_flush_each, logs)
            for log_dir in self.dirs.of_partitions
            if (logs := [log for log in due if directory_name(log.directory) == log_dir.path])
        }
        await self._work.in_each("flush", jobs)

    async def checkpoint_recovery_points(self) -> None:
        """Write what need not be recovered after a crash."""
        await self._checkpoint(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    async def checkpoint_log_starts(self) -> None:
        """Write the log start offsets that the segments' names do not tell."""
        await self._checkpoint(
            LOG_START_CHECKPOINT,
            lambda log: log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None,
        )

    async def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks."""
        await self._checkpoint(HIGH_WATERMARK_CHECKPOINT, lambda log: log.high_watermark)

    async def checkpoint_cleaned(self) -> None:
        """Write how far each log has been compacted."""
        await self._checkpoint(CLEANER_CHECKPOINT, lambda log: log.compaction.cleaned_offset)

    async def _checkpoint(self, name: str, offset_of: Callable[[PartitionLog], int | None]) -> None:
        dirs = [one for one in self.dirs.of_partitions if self._work.is_free(name, one.path)]
        changed = changed_offsets(dirs, self.all_logs(), name, offset_of)
        jobs = {one.log_dir.path: partial(write_offsets, self.files, name, [one]) for one in changed}
        await self._work.in_each(name, jobs)

    # --- stop -------------------------------------------------------------------------------------

    async def close(self, broker_epoch: int = -1, *, clean: bool = True) -> None:
        """Close every log in order and leave the clean shutdown marker where all went well.

        No marker is left if not all logs had been opened, or if not `clean`: something else in the
        directories, the metadata log, could not be closed in order.
        """
        await self.cleaner.close()
        await self.scrubber.close()
        while under_way := [*self._naming, *self._names_of.values(), *self._making]:
            await asyncio.wait(under_way)
        await self._work.finish()
        for log_dir in self.dirs.all if self._is_open else ():
            if log_dir.is_online:
                await self._close_dir(log_dir, broker_epoch, clean)
        self.logs, self.moves, self._copies = {}, {}, {}
        self.dirs.unlock()

    async def _close_dir(self, log_dir: LogDir, broker_epoch: int, others_are_clean: bool) -> None:
        logs = self.logs_in(log_dir)

        def close_some(some: list[PartitionLog]) -> bool:
            return False not in [log.close() for log in some]

        # Closing waits for the disk, which takes several waiters at a time better than one after the other.
        shares = [logs[i::CLOSING_THREADS] for i in range(CLOSING_THREADS)]
        jobs = [self._run_blocking(partial(close_some, share)) for share in shares if share]
        clean = False not in await asyncio.gather(*jobs)
        await self.checkpoint_recovery_points()
        await self.checkpoint_log_starts()
        await self.checkpoint_high_watermarks()
        if clean and others_are_clean and log_dir.is_online:
            marker = join(log_dir.path, CLEAN_SHUTDOWN_FILE)
            data = encode_clean_shutdown(broker_epoch)
            try:
                await self._run_blocking(lambda: self.files.replace_file(marker, data, sync=True))
            except OSError as error:  # a full disk, perhaps
                logger.warning("%s cannot be written, the next start recovers the logs: %s", marker, error)


def _still_made(wanted: WantedLog) -> KafkaError:
    """Why there is no log yet."""
    return KafkaError(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"The disk has not made the log of {wanted.topic}-{wanted.partition} yet",
    )


def _flush_each(logs: list[PartitionLog]) -> None:
    for log in logs:
        try:
            log.flush()
        except KafkaError:
            logger.debug(
                "%s-%d could not be flushed; its directory is out of service", log.topic, log.partition
            )
