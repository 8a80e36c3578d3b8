"""The offset checkpoints of log directories: one file of each kind in each directory, for all its logs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Optional

from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_offsets, encode_offsets
from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile")

#: One file of each in every directory.
CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)


def read_offsets(files: FileSystem, log_dir: LogDir, name: str) -> dict[PartitionKey, int]:
    """A checkpoint's entries. A malformed file is set aside, and the broker starts from the logs alone.

    Raises:
        OSError: the disk cannot be read.
    """
    path = join(log_dir.path, name)
    try:
        return decode_offsets(files.read_file(path))
    except FileNotFoundError:
        return {}
    except MalformedFile as error:
        logger.warning("%s is not readable (%s); set aside as %s.bad", path, error, name)
        files.rename(path, path + ".bad")
        return {}


class CheckpointedOffsets(NamedTuple):
    """The entries of one log in the checkpoints; these defaults stand where a checkpoint has none."""

    recovery_point: Optional[int] = None
    log_start_offset: int = 0
    high_watermark: int = 0
    cleaned_offset: Optional[int] = None


NOTHING_CHECKPOINTED = CheckpointedOffsets()


class Content(NamedTuple):
    """The next content of a checkpoint file in one directory."""

    log_dir: LogDir
    data: bytes
    #: `log_dir.cleared` when the content was made.
    cleared: int


def changed_offsets(
    log_dirs: Iterable[LogDir],
    logs: Iterable[PartitionLog],
    name: str,
    offset_of: Callable[[PartitionLog], int | None],
) -> list[Content]:
    """The new content of a checkpoint, for each directory whose file differs. A log for which `offset_of`
    says None has no entry.
    """
    online = [log_dir for log_dir in log_dirs if log_dir.is_online]
    entries: dict[str, list[tuple[PartitionKey, int]]] = {log_dir.path: [] for log_dir in online}
    for log in logs:
        offset = offset_of(log)
        listed = entries.get(directory_name(log.directory))
        if listed is not None and offset is not None:
            listed.append(((log.topic, log.partition), offset))
    contents = [Content(d, encode_offsets(entries[d.path]), d.cleared) for d in online]
    return [content for content in contents if content.log_dir.checkpointed.get(name) != content.data]


def write_offsets(files: FileSystem, name: str, contents: Iterable[Content]) -> None:
    """Write a checkpoint into several directories. Worker thread."""
    for log_dir, data, cleared in contents:
        with log_dir.checkpoint_lock:
            if cleared != log_dir.cleared:  # the content may name removed logs; the next round writes newer
                continue
            try:
                files.replace_file(join(log_dir.path, name), data, sync=True)
                log_dir.checkpointed[name] = data
            except OSError as error:  # a full disk must not stop the broker; the next round tries again
                level = (
                    logging.WARNING if log_dir.refusal is None else logging.DEBUG
                )  # its failure was logged
                logger.log(level, "%s in %s could not be written: %s", name, log_dir.path, error)


def clear_offsets(files: FileSystem, log_dir: LogDir) -> None:
    """Remove the entries of removed logs from the checkpoints, before one of their names is used again.

    Otherwise, after a crash, a new log would get the old one's recovery point, or lose the records below the
    old one's log start. Worker-safe; waits for the disk.

    Raises:
        OSError: a checkpoint cannot be written; the name of a removed log must not be used again now.
    """
    with log_dir.checkpoint_lock:
        log_dir.cleared += 1
        for name in CHECKPOINTS:
            offsets = read_offsets(files, log_dir, name)
            if log_dir.gone.isdisjoint(offsets):
                continue
            left = {key: offset for key, offset in offsets.items() if key not in log_dir.gone}
            data = encode_offsets(left.items())
            files.replace_file(join(log_dir.path, name), data, sync=True)
            log_dir.checkpointed[name] = data
        log_dir.gone.clear()
