"""Opening the folders of a log directory at the start: partitions, with recovery if the last stop was not
clean, and leftovers.

Apache Kafka stops for a folder it does not know and for a garbled checkpoint; here the first is left alone
and the second set aside.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import decode_clean_shutdown
from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import (
    CLEAN_SHUTDOWN_FILE,
    METADATA_TOPIC,
    OTHER_FOLDERS,
    parse_partition_folder,
)
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log, read_topic_id
from pykafka_broker.log.recovery.offset_checkpoints import CHECKPOINTS, CheckpointedOffsets, read_offsets
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.log.LogManager")

#: The interval at which long work logs its progress.
PROGRESS_MS = 3_000


class Folders(NamedTuple):
    """The folders of a log directory, with the partitions they are of."""

    in_service: list[tuple[str, PartitionKey]]
    #: On their way into this directory (`future_log.py`).
    future: list[tuple[str, PartitionKey]]
    #: Left to be removed.
    deleted: list[str]


class Opened(NamedTuple):
    """A log directory after its logs were opened."""

    logs: list[PartitionLog]
    futures: list[PartitionLog]
    #: The epoch in the clean shutdown marker; -1 if the last stop was not clean.
    broker_epoch: int
    deleted: list[str]


class Progress:
    """Logs the progress of long work, every few seconds. Any thread."""

    def __init__(self, text: str, total: int, monotonic_ms: Callable[[], int]) -> None:
        self._text = text
        self._total = total
        self._monotonic_ms = monotonic_ms
        self._next_ms = monotonic_ms() + PROGRESS_MS
        self._done = 0
        self._lock = threading.Lock()

    def advance(self) -> None:
        """One more is done."""
        with self._lock:
            self._done += 1
            now_ms = self._monotonic_ms()
            if now_ms >= self._next_ms:
                self._next_ms = now_ms + PROGRESS_MS
                remaining = self._total - self._done
                logger.info(self._text, self._done, self._done * 100 // self._total, remaining)


def list_folders(files: FileSystem, log_dir: LogDir) -> Folders:
    """Sort out the folders of a log directory by their names."""
    folders = Folders([], [], [])
    for entry in files.entries(log_dir.path):
        if not entry.is_directory or entry.name in OTHER_FOLDERS:
            continue
        folder = parse_partition_folder(entry.name)
        if folder is None:
            logger.warning("%s in %s is no partition's folder; it is left alone", entry.name, log_dir.path)
        elif folder.state == "delete":
            folders.deleted.append(join(log_dir.path, entry.name))
        elif folder.state == "future":
            folders.future.append((entry.name, (folder.topic, folder.partition)))
        elif folder.state == "" and folder.topic != METADATA_TOPIC:
            folders.in_service.append((entry.name, (folder.topic, folder.partition)))
    return folders


async def open_directory(
    files: FileSystem,
    log_dir: LogDir,
    *,
    config_for: Callable[[str], LogConfig],
    run_blocking: RunBlocking,
    clock: Clock,
    recovery_threads: int,
) -> Opened:
    """Open every log of a directory.

    Raises:
        OSError: the disk failed.
    """
    marker = join(log_dir.path, CLEAN_SHUTDOWN_FILE)
    try:
        broker_epoch = decode_clean_shutdown(files.read_file(marker))
        files.remove(marker)
        clean = True
    except FileNotFoundError:
        broker_epoch, clean = -1, False
    recovery_points, log_starts, high_watermarks, cleaned_offsets = (
        read_offsets(files, log_dir, name) for name in CHECKPOINTS
    )
    folders = list_folders(files, log_dir)
    log_dir.gone = set().union(recovery_points, log_starts, high_watermarks, cleaned_offsets)
    all_folders = [*folders.in_service, *folders.future]
    log_dir.gone.difference_update(key for _, key in all_folders)
    log_dir.unopened = {name for name, _ in all_folders}
    total = len(all_folders)
    if total:
        how = "Skipping recovery of" if clean else "Recovering"
        why = "clean shutdown file was found" if clean else "no clean shutdown file was found"
        logger.info("%s %d logs from %s since %s", how, total, log_dir.path, why)
    progress = Progress(
        f"{'Loaded' if clean else 'Recovered'} %d of {total} logs in {log_dir.path} (%d %%, "
        "remaining.logs: %d)",
        total,
        clock.monotonic_ms,
    )

    def open_one(name: str, key: PartitionKey) -> PartitionLog:
        assert log_dir.environment is not None
        directory = join(log_dir.path, name)
        log = open_log(
            log_dir.environment,
            LogIdentity(directory, *key, read_topic_id(files, directory) or ZERO_UUID),
            config_for(key[0]),
            CheckpointedOffsets(
                recovery_points.get(key),
                log_starts.get(key, 0),
                high_watermarks.get(key, 0),
                cleaned_offsets.get(key),
            ),
            clean=clean,
            now_ms=clock.now_ms(),
        )
        log_dir.unopened.discard(name)
        progress.advance()
        return log

    def open_some(some: list[tuple[str, PartitionKey]]) -> list[PartitionLog]:
        return [open_one(name, key) for name, key in some]

    # Scanning waits for the disk, and checksums need no interpreter: worth several threads.
    threads = 1 if clean else recovery_threads
    shares = [all_folders[i::threads] for i in range(threads)]
    jobs = [run_blocking(partial(open_some, share)) for share in shares if share]
    opened = [log for share in await asyncio.gather(*jobs) for log in share]
    future = {join(log_dir.path, name) for name, _ in folders.future}
    return Opened(
        [log for log in opened if log.directory not in future],
        [log for log in opened if log.directory in future],
        broker_epoch,
        folders.deleted,
    )
