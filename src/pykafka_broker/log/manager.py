"""All logs of a broker: its log directories from lock to clean shutdown marker, and the periodic work on
them.

Order of a start: `lock` (a second process is refused before it touches anything), `check_meta` (another
cluster's or node's directory is refused), `open_all`, then `create`/`get`/`delete` as the metadata says,
`tick` about once a second, and `close`. The caller owns the clock and the threads: `now_ms` and
`run_blocking` are injected, and what may wait for a disk goes through the latter.

A directory whose disk fails goes out of service: appends to its logs get KAFKA_STORAGE_ERROR, the others go
on. A full disk is no failure: see `PartitionLog.append`. Apache Kafka stops for a folder it does not know,
a garbled checkpoint or a lost `partition.metadata`; here the first is left alone, the second set aside, and
the third written again once the metadata image has told the topic id (`create`).

What the metadata does not know is never deleted: its folder gets a name that ends in `-stray`, for a person
to look at. So a lost metadata log costs no topic's data.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pykafka_broker.log.checkpoints import (
    MalformedFile,
    MetaProperties,
    PartitionKey,
    decode_clean_shutdown,
    decode_meta_properties,
    decode_offsets,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
)
from pykafka_broker.log.cleaner.cleaner import CleanerSettings, LogCleaner, ThreadWorker, Worker
from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.environment import Environment
from pykafka_broker.log.files import FileLockedError, FileSystem, Lock, directory_name, join, random_id
from pykafka_broker.log.loading import create_log, open_log, read_topic_id
from pykafka_broker.log.names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    METADATA_TOPIC,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_INDEX_CACHE,
    parse_partition_folder,
    partition_folder,
    set_aside_folder,
)
from pykafka_broker.log.partition import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

UNKNOWN_TOPIC_ID = bytes(16)

RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]
#: Runs a job in a thread for the disk of this log directory.
RunOnDisk = Callable[[str, Callable[[], Any]], Awaitable[Any]]


class LogDirError(Exception):
    """The broker cannot start on these directories; the text says why and what to do."""


class Intervals(NamedTuple):
    """How often periodic work is due, in milliseconds; Kafka's broker settings and defaults."""

    retention_check_ms: int = 300_000
    flush_check_ms: int = LONG_MAX
    recovery_point_checkpoint_ms: int = 60_000
    log_start_checkpoint_ms: int = 60_000
    high_watermark_checkpoint_ms: int = 5_000
    producer_expiration_check_ms: int = 600_000


DEFAULT_INTERVALS = Intervals()
DEFAULT_CLEANER_SETTINGS = CleanerSettings()

CLOSING_THREADS = 4
#: How often long work says how far it is.
PROGRESS_MS = 3_000
#: Files and indexes not used between two checks are given back.
IDLE_CHECK_MS = 60_000


class WantedLog(NamedTuple):
    """A log that there must be; `is_new` means that it cannot be in a directory that is out of service."""

    topic: str
    partition: int
    topic_id: bytes
    config: LogConfig
    directory_id: bytes | None = None
    is_new: bool = True


class Progress:
    """Says how far long work has come, every few seconds. Any thread."""

    def __init__(self, text: str, total: int, now_ms: Callable[[], int]) -> None:
        self._text = text
        self._total = total
        self._now_ms = now_ms
        self._next_ms = now_ms() + PROGRESS_MS
        self._done = 0
        self._lock = threading.Lock()

    def advance(self) -> None:
        """One more is done."""
        with self._lock:
            self._done += 1
            now_ms = self._now_ms()
            if now_ms >= self._next_ms:
                self._next_ms = now_ms + PROGRESS_MS
                logger.info(self._text, self._done, self._done * 100 // self._total)


class LogDir:
    """One log directory. `error` is what took it out of service."""

    def __init__(self, path: str) -> None:
        self.path = directory_name(join(path, ""))
        self.directory_id = bytes(16)
        self.error: OSError | None = None
        self.lock: Lock | None = None
        self.environment: Environment | None = None
        #: What the checkpoint files hold, so that nothing is written twice.
        self.checkpointed: dict[str, bytes] = {}
        #: Jobs that run one after the other, the one that runs among them.
        self.in_turn: deque[Callable[[], object]] = deque()

    @property
    def is_online(self) -> bool:
        return self.error is None


class LogManager:
    """The logs of one broker, by topic and partition. Event loop only, except where said."""

    def __init__(
        self,
        files: FileSystem,
        log_dirs: list[str],
        *,
        run_blocking: RunBlocking,
        run_on_disk: RunOnDisk | None = None,
        now_ms: Callable[[], int],
        config_for: Callable[[str], LogConfig] = lambda topic: LogConfig(),
        intervals: Intervals = DEFAULT_INTERVALS,
        recovery_threads: int = 2,
        on_dir_failure: Callable[[LogDir], None] = lambda log_dir: None,
        metadata_dir: str | None = None,
        cleaner_settings: CleanerSettings = DEFAULT_CLEANER_SETTINGS,
        new_cleaning_worker: Callable[[], Worker] | None = None,
        run_cleaning: RunBlocking | None = None,
    ) -> None:
        self.files = files
        #: Where partitions are.
        self.log_dirs = [LogDir(path) for path in log_dirs]
        #: Where the metadata log is, which others keep: one of `log_dirs`, the first by default, or another.
        self.metadata_dir = self.log_dirs[0]
        if metadata_dir is not None:
            other = LogDir(metadata_dir)
            self.metadata_dir = next((d for d in self.log_dirs if d.path == other.path), other)
        self.logs: dict[PartitionKey, PartitionLog] = {}
        self.intervals = intervals
        #: Told on the event loop when a directory has gone out of service.
        self.on_dir_failure = on_dir_failure
        #: Broker epoch in the clean shutdown markers; -1 if the last stop was not clean.
        self.previous_broker_epoch = -1
        self._run_blocking = run_blocking
        self._run_on_disk = run_on_disk or (lambda directory, job: run_blocking(job))
        self._now_ms = now_ms
        self._config_for = config_for
        self._recovery_threads = recovery_threads
        self._jobs: set[asyncio.Future[Any]] = set()
        self._buried: list[tuple[int, Callable[[], object]]] = []
        self._due: dict[str, int] = {}
        self._last_flush_ms: dict[PartitionKey, int] = {}
        #: Folders of deleted logs that are still to be renamed, and to what.
        self._leaving: dict[str, str] = {}
        #: Held while one is renamed.
        self._leaving_lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = False
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
        for log_dir in self._all_dirs:
            log_dir.environment = Environment(
                files,
                run_later=partial(self._run_later, log_dir.path),
                run_in_turn=partial(self._run_in_turn, log_dir),
                bury=self._bury,
                on_failure=partial(self._disk_failed, log_dir),
                on_exhausted=self._release_files,
            )

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self.logs.values())

    def __len__(self) -> int:
        return len(self.logs)

    @property
    def _all_dirs(self) -> list[LogDir]:
        return list(dict.fromkeys([*self.log_dirs, self.metadata_dir]))

    # --- start ------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Create the directories and take their lock files, or refuse with LogDirError. Blocking."""
        for log_dir in self._all_dirs:
            try:
                self._make_directory(log_dir.path)
                log_dir.lock = self.files.lock(join(log_dir.path, LOCK_FILE))
            except FileLockedError:
                self.unlock()
                raise LogDirError(
                    f"Failed to acquire lock on file .lock in {log_dir.path}. "
                    "A Kafka instance in another process or thread is using this directory."
                ) from None
            except OSError as error:
                logger.error("Log directory %s cannot be used: %s", log_dir.path, error.strerror or error)
                log_dir.error = error
        try:
            self._require_directories()
        except LogDirError:
            self.unlock()
            raise

    def _make_directory(self, path: str) -> None:
        """Create a folder whose name, and those above it, survive a power cut."""
        missing = []
        above = path
        while above and not self.files.exists(above):
            missing.append(above)
            above = directory_name(above)
        self.files.make_directory(path)
        for created in reversed(missing):
            self.files.sync_directory(directory_name(created) or ".")

    def _require_directories(self) -> None:
        """No broker starts without the directory of the metadata, or without any for partitions."""
        if not self.metadata_dir.is_online or not any(log_dir.is_online for log_dir in self.log_dirs):
            reasons = [f"{d.path}: {d.error.strerror or d.error}" for d in self._all_dirs if d.error]
            raise LogDirError(
                f"There is no log directory to start on ({', '.join(reasons)}). Let this user write there, "
                "or name other folders with log.dirs and metadata.log.dir."
            )

    def unlock(self) -> None:
        """Give the lock files back."""
        for log_dir in self._all_dirs:
            if log_dir.lock is not None:
                log_dir.lock.release()
                log_dir.lock = None

    def refuse_unformatted_data(self) -> None:
        """A first start must not take over folders of partitions that some other cluster left. Blocking.

        Raises:
            LogDirError: there are some.
        """
        for log_dir in self.log_dirs:
            if log_dir.is_online and (folders := self._partition_folders(log_dir)):
                raise LogDirError(
                    f"{self.metadata_dir.path} has no {META_PROPERTIES}, but {log_dir.path} holds partitions "
                    f"({folders[0][0]}). Restore the metadata directory, or run `pykafka-broker format` to "
                    "begin a new cluster, which will set these partitions aside."
                )

    def read_meta(self, log_dir: LogDir) -> MetaProperties | None:
        """The `meta.properties` of a directory, None if it has none. Blocking.

        Raises:
            LogDirError: the file is garbage, or newer than this software.
        """
        path = join(log_dir.path, META_PROPERTIES)
        try:
            meta = decode_meta_properties(self.files.read_file(path))
            if meta.cluster_id is None and log_dir is self.metadata_dir:
                raise MalformedFile("meta.properties names no cluster")
            return meta
        except FileNotFoundError:
            return None
        except MalformedFile as error:
            raise LogDirError(
                f"{path} cannot be used: {error}. Start the version of the software that wrote it, "
                "or restore the file from a backup."
            ) from None

    def check_meta(self, *, node_id: int, cluster_id: str, new_directory_id: Callable[[], bytes]) -> None:
        """Compare `meta.properties` of every directory with who we are, and complete them. Blocking.

        A directory without the file is new and gets one; one without a directory id (before Kafka 3.7) gets
        that.
        """
        seen: dict[bytes, str] = {}
        for log_dir in self._all_dirs:
            if not log_dir.is_online:
                continue
            meta = self.read_meta(log_dir) or MetaProperties(None, None, None)
            if meta.cluster_id not in (None, cluster_id):
                raise LogDirError(
                    f"{log_dir.path} belongs to cluster {meta.cluster_id}, this broker to {cluster_id}. "
                    "Point log.dirs at this cluster's data, or remove what is there."
                )
            if meta.node_id not in (None, node_id):
                raise LogDirError(
                    f"{log_dir.path} belongs to node {meta.node_id}, this is node {node_id}. "
                    "Check node.id, or whether the directory was copied from another node."
                )
            complete = MetaProperties(cluster_id, node_id, meta.directory_id or new_directory_id())
            assert complete.directory_id is not None
            if complete.directory_id in seen:
                raise LogDirError(
                    f"{log_dir.path} and {seen[complete.directory_id]} have the same directory.id: "
                    "one of them is a copy."
                )
            seen[complete.directory_id] = log_dir.path
            log_dir.directory_id = complete.directory_id
            if complete != meta:
                path = join(log_dir.path, META_PROPERTIES)
                self.files.replace_file(path, encode_meta_properties(complete), sync=True)

    async def open_all(self) -> None:
        """Open every partition folder, with recovery where the last stop was not clean.

        Raises:
            LogDirError: too many directories failed over it.
        """
        self._loop = asyncio.get_running_loop()
        started_ms = self._now_ms()
        epochs = [await self._open_dir(log_dir) for log_dir in self._all_dirs if log_dir.is_online]
        self.previous_broker_epoch = epochs[0] if epochs and len(set(epochs)) == 1 else -1
        self._require_directories()
        self._is_open = True
        if self.logs:
            logger.info("Loaded %d logs in %d ms", len(self.logs), self._now_ms() - started_ms)

    async def _open_dir(self, log_dir: LogDir) -> int:
        marker = join(log_dir.path, CLEAN_SHUTDOWN_FILE)
        try:
            broker_epoch = decode_clean_shutdown(self.files.read_file(marker))
            self.files.remove(marker)
            clean = True
        except FileNotFoundError:
            broker_epoch, clean = -1, False
        checkpoints = {
            name: self._read_checkpoint(log_dir, name)
            for name in (
                RECOVERY_POINT_CHECKPOINT,
                LOG_START_CHECKPOINT,
                HIGH_WATERMARK_CHECKPOINT,
                CLEANER_CHECKPOINT,
            )
        }
        folders = self._partition_folders(log_dir)
        if folders:
            how = "Skipping recovery of" if clean else "Recovering"
            why = "clean shutdown file was found" if clean else "no clean shutdown file was found"
            logger.info("%s %d logs from %s since %s", how, len(folders), log_dir.path, why)

        progress = Progress(
            f"{'Loaded' if clean else 'Recovered'} %d of {len(folders)} logs in {log_dir.path} (%d %%)",
            len(folders),
            self._now_ms,
        )

        def open_one(name: str, key: PartitionKey) -> PartitionLog:
            assert log_dir.environment is not None
            directory = join(log_dir.path, name)
            log = open_log(
                log_dir.environment,
                directory,
                key[0],
                key[1],
                read_topic_id(self.files, directory) or UNKNOWN_TOPIC_ID,
                self._config_for(key[0]),
                clean=clean,
                recovery_point=checkpoints[RECOVERY_POINT_CHECKPOINT].get(key),
                log_start_offset=checkpoints[LOG_START_CHECKPOINT].get(key, 0),
                high_watermark=checkpoints[HIGH_WATERMARK_CHECKPOINT].get(key, 0),
                now_ms=self._now_ms(),
            )
            progress.advance()
            return log

        def open_some(some: list[tuple[str, PartitionKey]]) -> list[PartitionLog]:
            return [open_one(name, key) for name, key in some]

        try:
            # Scanning waits for the disk, and checksums need no interpreter: worth several threads.
            threads = 1 if clean else self._recovery_threads
            shares = [folders[i::threads] for i in range(threads)]
            jobs = [self._run_blocking(partial(open_some, share)) for share in shares if share]
            opened = [log for share in await asyncio.gather(*jobs) for log in share]
        except OSError as error:
            self._disk_failed(log_dir, error)
            return -1
        for log in opened:
            key = (log.topic, log.partition)
            if key in self.logs:
                raise LogDirError(f"{log.directory} and {self.logs[key].directory} are the same partition.")
            log.compaction.cleaned_offset = checkpoints[CLEANER_CHECKPOINT].get(key)
            self.logs[key] = log
        return broker_epoch

    def _partition_folders(self, log_dir: LogDir) -> list[tuple[str, PartitionKey]]:
        folders = []
        for entry in self.files.entries(log_dir.path):
            if not entry.is_directory or entry.name == REMOTE_INDEX_CACHE:
                continue
            folder = parse_partition_folder(entry.name)
            if folder is None:
                logger.warning(
                    "%s in %s is no partition's folder; it is left alone", entry.name, log_dir.path
                )
            elif folder.state == "delete":
                self._bury_folder(join(log_dir.path, entry.name), 0)
            elif folder.state == "" and folder.topic != METADATA_TOPIC:
                folders.append((entry.name, (folder.topic, folder.partition)))
        return folders

    def _read_checkpoint(self, log_dir: LogDir, name: str) -> dict[PartitionKey, int]:
        """A checkpoint's entries. One that is garbage is set aside: without it we start from what the logs
        say.
        """
        path = join(log_dir.path, name)
        try:
            return decode_offsets(self.files.read_file(path))
        except FileNotFoundError:
            return {}
        except MalformedFile as error:
            logger.warning("%s is not readable (%s); set aside as %s.bad", path, error, name)
            self.files.rename(path, path + ".bad")
            return {}

    # --- logs -------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, None if there is none here."""
        return self.logs.get((topic, partition))

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
        """As `create` for each, with the file work of new logs in a worker thread: a log, or why there is
        none.
        """
        made: dict[int, PartitionLog | KafkaError] = {}
        missing: list[tuple[int, LogDir]] = []
        counts = self._log_counts()
        for number, one in enumerate(wanted):
            try:
                log = self._existing(one)
                if log is None:
                    log_dir = self._dir_for_new_log(one, counts)
                    counts[log_dir.path] += 1
                    missing.append((number, log_dir))
                else:
                    made[number] = log
            except KafkaError as error:
                made[number] = error

        def make() -> None:
            for number, log_dir in missing:
                try:
                    made[number] = self._make(wanted[number], log_dir)
                except KafkaError as error:
                    made[number] = error

        if missing:
            await self._run_blocking(make)
        for number, _ in missing:
            log_or_error = made[number]
            if isinstance(log_or_error, PartitionLog):
                self.logs[log_or_error.topic, log_or_error.partition] = log_or_error
        return [made[number] for number in range(len(wanted))]

    def _existing(self, wanted: WantedLog) -> PartitionLog | None:
        """The log that is there already, in line with what is wanted."""
        log = self.logs.get((wanted.topic, wanted.partition))
        if log is None:
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

    def _make(self, wanted: WantedLog, log_dir: LogDir) -> PartitionLog:
        """A new log in a new folder. Worker-safe."""
        assert log_dir.environment is not None
        topic, partition = wanted.topic, wanted.partition
        directory = join(log_dir.path, partition_folder(topic, partition))
        self._leave(directory)
        try:
            log = create_log(log_dir.environment, directory, topic, partition, wanted.topic_id, wanted.config)
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
            entries = self.files.entries(directory, sizes=True)
            if not any(entry.name.endswith(LOG_SUFFIX) and entry.size for entry in entries):
                self.files.remove_tree(directory)
        except OSError as error:
            logger.debug("%s cannot be removed: %s", directory, error)

    def _dir_for_new_log(self, wanted: WantedLog, counts: Mapping[str, int]) -> LogDir:
        """The directory it shall have, or the one with the fewest logs; `counts` is by path."""
        if not wanted.is_new and not all(log_dir.is_online for log_dir in self.log_dirs):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"The log of {wanted.topic}-{wanted.partition} may be in a directory that is out of service",
            )
        online = [log_dir for log_dir in self.log_dirs if log_dir.is_online]
        for log_dir in online:
            if log_dir.directory_id == wanted.directory_id:
                return log_dir
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No log directory is in service")
        return min(online, key=lambda log_dir: counts[log_dir.path])

    def _log_counts(self) -> Counter[str]:
        """How many logs each directory has, by path."""
        if len(self.log_dirs) == 1:  # nothing to choose from, so nothing to count
            return Counter()
        return Counter(directory_name(log.directory) for log in self)

    def delete(self, topic: str, partition: int) -> bool:
        """Take a log out of service now and off the disk later; readers that wait for it are woken.

        Its folder is renamed in a worker thread, and removed `file.delete.delay.ms` later.
        """
        log = self.logs.pop((topic, partition), None)
        if log is None:
            return False
        aside = join(directory_name(log.directory), set_aside_folder(topic, partition, random_id(), "delete"))
        log.retire()
        self._leaving[log.directory] = aside
        self._bury_folder(aside, log.config.file_delete_delay_ms, formerly=log.directory)
        if len(self._leaving) == 1:
            self._run_later(directory_name(log.directory), self._leave_all)
        return True

    def _leave_all(self) -> None:
        """Rename the folders of deleted logs. Worker thread."""
        while self._leaving:
            self._leave(next(iter(self._leaving)))

    def _leave(self, directory: str) -> None:
        """Rename the folder of a deleted log, if that is still to do. Worker-safe."""
        if directory not in self._leaving:
            return
        with self._leaving_lock:
            aside = self._leaving.get(directory)
            if aside is None:
                return
            try:
                self.files.rename(directory, aside)
            except OSError as error:
                logger.error("%s cannot be deleted: %s", directory, error)
            else:
                logger.info("%s is renamed to %s and is scheduled for deletion", directory, aside)
            del self._leaving[directory]

    def set_strays_aside(self, is_wanted: Callable[[PartitionLog], bool]) -> list[PartitionLog]:
        """Take the logs that the metadata does not know out of service and keep their data; those logs."""
        strays = [log for log in self.logs.values() if not is_wanted(log)]
        for log in strays:
            self._set_aside(log)
        return strays

    def _set_aside(self, log: PartitionLog) -> None:
        del self.logs[log.topic, log.partition]
        log.retire()
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

    def dir_of(self, log: PartitionLog) -> LogDir:
        """The directory a log lies in."""
        parent = directory_name(log.directory)
        return next(log_dir for log_dir in self.log_dirs if log_dir.path == parent)

    def logs_in(self, log_dir: LogDir) -> list[PartitionLog]:
        """The logs that lie in a directory."""
        return [log for log in self if directory_name(log.directory) == log_dir.path]

    # --- failures ---------------------------------------------------------------------------------

    def _disk_failed(self, log_dir: LogDir, error: OSError) -> None:
        """Take a directory out of service. Any thread."""
        if log_dir.error is not None:
            return
        log_dir.error = error
        logger.error("Stopping serving logs in dir %s: %s", log_dir.path, error)
        for log in list(self.logs.values()):
            if directory_name(log.directory) == log_dir.path:
                log.offline = error
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell_of_failure, log_dir)

    def _tell_of_failure(self, log_dir: LogDir) -> None:
        """Wake who waits for one of the lost logs, and tell the owner."""
        for log in self.logs_in(log_dir):
            log.wake_waiting()
        self.on_dir_failure(log_dir)

    def _release_files(self) -> None:
        """Too many files are open: give all descriptors back, they return one by one. Any thread."""
        logger.warning("Too many open files: closing those of all logs; raise the limit (ulimit -n)")
        for log in list(self.logs.values()):
            log.release_files()

    def _thread_worker(self) -> Worker:
        """Cleans in the worker thread, at whatever speed: the injected clock is no measure for a rate."""
        return ThreadWorker(self.files, now_s=lambda: self._now_ms() / 1000, sleep=lambda seconds: None)

    # --- periodic work ----------------------------------------------------------------------------

    def _run_later(self, directory: str, job: Callable[[], object]) -> None:
        """Run a job in a worker thread of a log directory; without a running loop (tools), here and now."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            job()
            return
        future = asyncio.ensure_future(self._run_on_disk(directory, job))
        self._jobs.add(future)
        future.add_done_callback(self._job_done)

    def _run_in_turn(self, log_dir: LogDir, job: Callable[[], object]) -> None:
        """Run a job in a worker thread when those before it have ended, so that other work finds threads."""
        log_dir.in_turn.append(job)
        if len(log_dir.in_turn) == 1:
            self._run_later(log_dir.path, partial(self._run_turns, log_dir.in_turn))

    @staticmethod
    def _run_turns(jobs: deque[Callable[[], object]]) -> None:
        while jobs:
            try:
                jobs[0]()
            except Exception:
                logger.exception("file work failed")
            jobs.popleft()

    def _job_done(self, future: asyncio.Future[Any]) -> None:
        self._jobs.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.error("file work failed", exc_info=error)

    def _bury(self, job: Callable[[], object], delay_ms: int) -> None:
        self._buried.append((self._now_ms() + delay_ms, job))

    def _bury_folder(self, path: str, delay_ms: int, *, formerly: str | None = None) -> None:
        def remove() -> None:
            if formerly is not None:
                self._leave(formerly)
            try:
                self.files.remove_tree(path)
                logger.info("Deleted %s", path)
            except OSError as error:
                logger.warning("%s could not be deleted, the next start tries again: %s", path, error)

        self._bury(remove, delay_ms)

    async def tick(self, now_ms: int) -> None:
        """Do whatever is due; call it about once a second."""
        intervals = self.intervals
        if self._buried:
            await self._remove_buried(now_ms)
        if self._is_due("retention", now_ms, intervals.retention_check_ms):
            self.apply_retention(now_ms)
        self.cleaner.tick(now_ms)
        if self._is_due("producers", now_ms, intervals.producer_expiration_check_ms):
            for log in self:
                log.expire_producers(now_ms)
        if self._is_due("idle files", now_ms, IDLE_CHECK_MS):
            for log in self:
                log.release_idle()
        if self._is_due("flush", now_ms, min(intervals.flush_check_ms, 1000)):
            await self.flush_due(now_ms)
        if self._is_due("recovery points", now_ms, intervals.recovery_point_checkpoint_ms):
            await self.checkpoint_recovery_points()
        if self._is_due("log starts", now_ms, intervals.log_start_checkpoint_ms):
            await self.checkpoint_log_starts()
        if self._is_due("high watermarks", now_ms, intervals.high_watermark_checkpoint_ms):
            await self.checkpoint_high_watermarks()

    def _is_due(self, what: str, now_ms: int, interval_ms: int) -> bool:
        """True once per interval; the first time one interval after the first call."""
        due_ms = self._due.setdefault(what, now_ms + interval_ms)
        if now_ms < due_ms:
            return False
        self._due[what] = now_ms + interval_ms
        return True

    async def _remove_buried(self, now_ms: int) -> None:
        due = [job for due_ms, job in self._buried if due_ms <= now_ms]
        if not due:
            return
        self._buried = [entry for entry in self._buried if entry[0] > now_ms]
        await self._run_blocking(lambda: [job() for job in due])

    def apply_retention(self, now_ms: int) -> int:
        """Apply retention to every log; how many segments went."""
        removed = 0
        for log in list(self):
            if log.offline is not None:
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
            if now_ms - self._last_flush_ms.setdefault(key, now_ms) >= log.config.flush_ms:
                self._last_flush_ms[key] = now_ms
                due.append(log)
        if due:
            await self._run_blocking(lambda: _flush_each(due))

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
        changed = self._checkpoint_contents(name, offset_of)
        if changed:
            await self._run_blocking(lambda: self._write_checkpoints(name, changed))

    def _checkpoint_contents(
        self, name: str, offset_of: Callable[[PartitionLog], int | None]
    ) -> list[tuple[LogDir, bytes]]:
        entries: dict[str, list[tuple[PartitionKey, int]]] = {
            d.path: [] for d in self.log_dirs if d.is_online
        }
        for key, log in self.logs.items():
            offset = offset_of(log)
            listed = entries.get(directory_name(log.directory))
            if listed is not None and offset is not None:
                listed.append((key, offset))
        contents = [(d, encode_offsets(entries[d.path])) for d in self.log_dirs if d.path in entries]
        return [(d, data) for d, data in contents if d.checkpointed.get(name) != data]

    def _write_checkpoints(self, name: str, contents: list[tuple[LogDir, bytes]]) -> None:
        for log_dir, data in contents:
            try:
                self.files.replace_file(join(log_dir.path, name), data, sync=True)
                log_dir.checkpointed[name] = data
            except OSError as error:  # a full disk must not stop the broker; the next round tries again
                logger.warning("%s in %s could not be written: %s", name, log_dir.path, error)

    # --- stop -------------------------------------------------------------------------------------

    async def close(self, broker_epoch: int = -1, *, clean: bool = True) -> None:
        """Close every log in order and leave the clean shutdown marker where all went well.

        No marker is left if not all logs had been opened, or if not `clean`: something else in the
        directories, the metadata log, could not be closed in order.
        """
        await self.cleaner.close()
        while self._jobs:
            await asyncio.wait(list(self._jobs))
        for log_dir in self._all_dirs if self._is_open else ():
            if log_dir.is_online:
                await self._close_dir(log_dir, broker_epoch, clean)
        self.logs = {}
        self.unlock()

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


def _flush_each(logs: list[PartitionLog]) -> None:
    for log in logs:
        try:
            log.flush()
        except KafkaError:
            logger.debug(
                "%s-%d could not be flushed; its directory is out of service", log.topic, log.partition
            )
