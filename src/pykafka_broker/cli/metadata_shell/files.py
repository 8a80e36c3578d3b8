"""The metadata in the files of a node: a snapshot, or the newest snapshot of a folder and the log after it.

Read only, also while the node runs. The files do not say which of the newest records are committed: all are
shown. An incomplete batch ends the log.
"""

from __future__ import annotations

import os

import click

from pykafka_broker.cli.metadata_shell.replaying import Replaying
from pykafka_broker.cli.metadata_shell.tree import View
from pykafka_broker.cluster.image import CorruptMetadataError
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.names import (
    LOG_SUFFIX,
    METADATA_TOPIC,
    parse_offset_file,
    parse_partition_folder,
    partition_folder,
)
from pykafka_broker.protocol.records.batch import check_batch, iter_batches
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.snapshots import decode_snapshot, parse_snapshot_name

FOLDER = partition_folder(METADATA_TOPIC, 0)


def read_snapshot(path: str) -> View:
    """The metadata in a `.checkpoint` file.

    Raises:
        click.ClickException: the file is damaged.
    """
    replaying = Replaying()
    try:
        _take_snapshot(replaying, path)
    except (MalformedFile, CorruptMetadataError) as error:
        raise click.ClickException(f"{path}: {error}") from None
    return replaying.view


def read_folder(path: str) -> View:
    """The metadata in a folder of the metadata log, or in a log directory that has one.

    Raises:
        click.ClickException: there is no metadata log, or it is damaged.
    """
    inner = os.path.join(path, FOLDER)
    folder = inner if os.path.isdir(inner) else path
    names = os.listdir(folder)
    snapshots = {found: name for name in names if (found := parse_snapshot_name(name)) is not None}
    segments = sorted(name for name in names if (parse_offset_file(name) or (0, ""))[1] == LOG_SUFFIX)
    of_partition = parse_partition_folder(os.path.basename(os.path.abspath(folder)))
    is_of_topic = of_partition is not None and of_partition.topic != METADATA_TOPIC
    if is_of_topic or not (snapshots or segments):
        near = [name for name in sorted(names) if os.path.isdir(os.path.join(path, name, FOLDER))]
        hint = f"; {os.path.join(path, near[0])} has one" if near else f": no {FOLDER} is in it"
        raise click.ClickException(f"{path} has no metadata log{hint}")
    replaying = Replaying()
    try:
        if snapshots:
            _take_snapshot(replaying, os.path.join(folder, snapshots[max(snapshots)]))
        for name in segments:
            _take_segment(replaying, os.path.join(folder, name))
    except (MalformedFile, CorruptMetadataError) as error:
        raise click.ClickException(f"{folder}: {error}") from None
    return replaying.view


def _take_snapshot(replaying: Replaying, path: str) -> None:
    with open(path, "rb") as file:
        snapshot = decode_snapshot(file.read())
    snapshot_id = parse_snapshot_name(os.path.basename(path)) or SnapshotId(len(snapshot.values), 0)
    replaying.start_from(snapshot_id, snapshot)


def _take_segment(replaying: Replaying, path: str) -> None:
    with open(path, "rb") as file:
        data = file.read()
    for position, header in iter_batches(data):
        if header.next_offset <= replaying.next_offset:
            continue
        if header.base_offset != replaying.next_offset:
            raise MalformedFile(
                f"the log goes on at offset {header.base_offset}, and nothing has the records from "
                f"{replaying.next_offset} on"
            )
        check_batch(data, position)
        replaying.take(header, memoryview(data)[position : position + header.size_in_bytes])
