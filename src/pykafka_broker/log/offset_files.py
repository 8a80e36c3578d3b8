"""The offset checkpoints of log directories: one file of each kind in each directory, for all its logs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pykafka_broker.log.checkpoints import MalformedFile, PartitionKey, decode_offsets, encode_offsets
from pykafka_broker.log.directories import LogDir
from pykafka_broker.log.files import FileSystem, directory_name, join
from pykafka_broker.log.partition import PartitionLog

logger = logging.getLogger(__name__)


def read_offsets(files: FileSystem, log_dir: LogDir, name: str) -> dict[PartitionKey, int]:
    """A checkpoint's entries. One that is garbage is set aside: without it we start from what the logs say.

    Raises:
        OSError: the disk refuses to say.
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


def changed_offsets(
    log_dirs: Iterable[LogDir],
    logs: Iterable[PartitionLog],
    name: str,
    offset_of: Callable[[PartitionLog], int | None],
) -> list[tuple[LogDir, bytes]]:
    """The new content of a checkpoint in each directory in which it is not written yet.

    A log for which `offset_of` says None has no entry.
    """
    online = [log_dir for log_dir in log_dirs if log_dir.is_online]
    entries: dict[str, list[tuple[PartitionKey, int]]] = {log_dir.path: [] for log_dir in online}
    for log in logs:
        offset = offset_of(log)
        listed = entries.get(directory_name(log.directory))
        if listed is not None and offset is not None:
            listed.append(((log.topic, log.partition), offset))
    contents = [(log_dir, encode_offsets(entries[log_dir.path])) for log_dir in online]
    return [(log_dir, data) for log_dir, data in contents if log_dir.checkpointed.get(name) != data]


def write_offsets(files: FileSystem, name: str, contents: Iterable[tuple[LogDir, bytes]]) -> None:
    """Write a checkpoint into several directories. Worker thread."""
    for log_dir, data in contents:
        try:
            files.replace_file(join(log_dir.path, name), data, sync=True)
            log_dir.checkpointed[name] = data
        except OSError as error:  # a full disk must not stop the broker; the next round tries again
            logger.warning("%s in %s could not be written: %s", name, log_dir.path, error)
