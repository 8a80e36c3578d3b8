"""A snapshot that a leader sends in parts: `<snapshot>.checkpoint.part`, renamed once all of it is on disk.

A file left by a stop or a crash is removed at the next start; the snapshot is then fetched anew.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.files import File, FileSystem, join, write_fully
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.state import Chunk
from pykafka_broker.raft.snapshots import Snapshot, decode_snapshot

logger = logging.getLogger(__name__)

PART_SUFFIX = ".checkpoint.part"


def part_name(snapshot_id: SnapshotId) -> str:
    """The name of a snapshot's file while it is received."""
    return snapshot_id.file_name + ".part"


def remove_parts(files: FileSystem, directory: str) -> None:
    """Remove unfinished files that an earlier process left."""
    for entry in files.entries(directory):
        if entry.name.endswith(PART_SUFFIX):
            files.remove(join(directory, entry.name))


class ReceivedSnapshots:
    """Receives one snapshot at a time; the first part of another one discards the one before."""

    __slots__ = ("_directory", "_file", "_files", "_snapshot_id")

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._snapshot_id: SnapshotId | None = None
        self._file: File | None = None

    def write(self, chunk: Chunk) -> None:
        """Write a part to its place."""
        if chunk.position == 0:
            self.give_up()
            path = join(self._directory, part_name(chunk.snapshot_id))
            self._file = self._files.open(path, create=True)
            self._file.truncate(0)
            self._snapshot_id = chunk.snapshot_id
        assert self._file is not None and self._snapshot_id == chunk.snapshot_id, chunk.snapshot_id
        write_fully(self._file, chunk.data, chunk.position)

    def finish(self) -> Snapshot:
        """Sync the file, check that it is whole, and rename it. For worker threads.

        Raises:
            MalformedFile: the leader has sent a damaged file.
            OSError: the disk failed.
        """
        assert self._file is not None and self._snapshot_id is not None, "nothing is received"
        self._file.sync()
        part = join(self._directory, part_name(self._snapshot_id))
        snapshot = decode_snapshot(self._files.read_file(part))
        self._close()
        self._files.rename(part, join(self._directory, self._snapshot_id.file_name))
        self._files.sync_directory(self._directory)
        self._snapshot_id = None
        return snapshot

    def refused(self, error: MalformedFile) -> None:
        """Remove a file that `finish` has refused; the leader will be asked for a snapshot again."""
        logger.error("The leader has sent the damaged snapshot %s: %s", self._snapshot_id, error)
        self.give_up()

    def give_up(self) -> None:
        """Remove the parts received so far."""
        self._close()
        if self._snapshot_id is not None:
            with suppress(FileNotFoundError):
                self._files.remove(join(self._directory, part_name(self._snapshot_id)))
            self._snapshot_id = None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
