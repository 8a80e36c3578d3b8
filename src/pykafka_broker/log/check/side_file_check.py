"""Judging the files beside the segments: partition.metadata, leader epochs, producer snapshots, leftovers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pykafka_broker.log.check.findings import Finding, Remedy, vanishing
from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_epochs, decode_partition_metadata
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    DENSE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    WINDOW_SUFFIX,
    offset_file,
    parse_offset_file,
)
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.producers import CorruptSnapshotError, read_snapshot, restore_windows

_LEFTOVERS = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX, TEMPORARY_SUFFIX)


def check_leftovers(directory: str, names: Collection[str]) -> Iterator[Finding]:
    """Files of work that was cut short."""
    for name in sorted(names):
        if name.endswith(_LEFTOVERS) and not name.endswith(DENSE_SUFFIX):
            yield Finding(join(directory, name), "is left over from work that was cut short", Remedy.START)


def check_metadata(files: FileSystem, directory: str) -> Iterator[Finding]:
    path = join(directory, PARTITION_METADATA)
    try:
        decode_partition_metadata(files.read_file(path))
    except FileNotFoundError:
        yield Finding(path, "is missing", Remedy.START)
    except MalformedFile as error:
        yield Finding(path, f"is not readable: {error}", Remedy.START)


def read_epochs(files: FileSystem, directory: str) -> tuple[LeaderEpochs, list[Finding]]:
    path = join(directory, LEADER_EPOCH_CHECKPOINT)
    try:
        return LeaderEpochs(decode_epochs(files.read_file(path))), []
    except FileNotFoundError:
        return LeaderEpochs(), [Finding(path, "is missing", Remedy.START)]
    except MalformedFile as error:
        return LeaderEpochs(), [Finding(path, f"is not readable: {error}", Remedy.REMOVE)]


def check_snapshots(
    files: FileSystem, directory: str, names: set[str], *, is_in_use: bool
) -> Iterator[Finding]:
    for name in sorted(names):
        parsed = parse_offset_file(name)
        if parsed is not None and parsed[1] == SNAPSHOT_SUFFIX:
            with vanishing(is_in_use):
                yield from _check_snapshot(files, directory, parsed[0], names)


def _check_snapshot(files: FileSystem, directory: str, offset: int, names: set[str]) -> Iterator[Finding]:
    path = join(directory, offset_file(offset, SNAPSHOT_SUFFIX))
    try:
        states = read_snapshot(files.read_file(path))
    except CorruptSnapshotError as error:
        yield Finding(path, str(error), Remedy.REMOVE)
        return
    window = offset_file(offset, WINDOW_SUFFIX)
    if window in names:
        try:
            restore_windows(states, files.read_file(join(directory, window)))
        except CorruptSnapshotError as error:
            yield Finding(join(directory, window), str(error), Remedy.REMOVE)
