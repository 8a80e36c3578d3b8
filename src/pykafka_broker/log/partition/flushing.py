"""Making a log durable: what is written and synced, in which order, and how far that has come.

Appends leave three things to a flush: batches in the page cache, indexes of rolled segments in memory, and
producer snapshots in memory. A flush runs in a worker thread while the event loop appends; the order is
FORMAT.md's. The recovery point moves last, so a crash at any moment finds below it only what is on stable
storage, indexes included.

A sync that failed is never tried again: the kernel may have dropped the pages it could not write, and would
call the next one a success.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import directory_name, join, sync_file
from pykafka_broker.log.disk.names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, offset_file
from pykafka_broker.log.partition.producer_snapshots import Snapshot
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS


class Flusher:
    """What of one log is durable, and the only one who makes it so."""

    __slots__ = (
        "_environment",
        "_failure",
        "_making_lock",
        "_names_lock",
        "_unsynced",
        "_unsynced_lock",
        "directory",
        "lock",
        "pending_snapshots",
        "recovery_point",
        "retired",
    )

    def __init__(
        self, environment: Environment, directory: str, *, recovery_point: int, is_new: bool
    ) -> None:
        self._environment = environment
        self.directory = directory
        #: Everything below is on stable storage.
        self.recovery_point = recovery_point
        #: Snapshots that are still to be written, oldest first.
        self.pending_snapshots: list[Snapshot] = []
        #: Small files and folders whose latest change is not durable; a new log has not even its own name.
        self._unsynced: set[str] = set()
        if is_new:
            parent = directory_name(directory)
            self._unsynced = {join(directory, PARTITION_METADATA), self._epochs_path, directory, parent}
        #: The folder belongs to somebody else now.
        self.retired = False
        self._failure: OSError | None = None
        #: One flush at a time; held while waiting for the disk, so the event loop takes it for truncation
        #: only.
        self.lock = threading.Lock()
        #: Held while side files are written or renamed in a worker thread.
        self._names_lock = threading.Lock()
        #: Held while what an append needs is made: producers wait for that, and for nothing else.
        self._making_lock = threading.Lock()
        #: Held for a moment only.
        self._unsynced_lock = threading.Lock()

    @property
    def _epochs_path(self) -> str:
        return join(self.directory, LEADER_EPOCH_CHECKPOINT)

    def note_epochs(self) -> None:
        """The leader epochs were replaced."""
        self._note({self._epochs_path, self.directory})

    def note_names(self) -> None:
        """A file was created or renamed in the folder."""
        self._note({self.directory})

    def _note(self, paths: set[str]) -> None:
        with self._unsynced_lock:
            self._unsynced = self._unsynced | paths

    def relocate(self, directory: str) -> None:
        """The folder has been renamed to `directory`; the caller holds `lock`."""
        old, self.directory = self.directory, directory
        with self._unsynced_lock:
            moved = {
                path if path == directory_name(old) else directory + path[len(old) :]
                for path in self._unsynced
            }
            self._unsynced = moved | {directory, directory_name(directory)}

    def retire(self) -> None:
        """The folder is about to be renamed: no worker touches a file of it by name from now on."""
        self.retired = True

    def settle(self) -> None:
        """Return when no worker touches a file of the retired folder by name any more. May take long."""
        with self._names_lock, self._making_lock:
            assert self.retired

    def set_aside(self, segments: Sequence[Segment], suffix: str) -> None:
        """Rename the files of deleted segments. Worker thread."""
        with self._names_lock:
            for segment in segments if not self.retired else ():
                segment.files.set_all_aside(suffix)

    def rename(self, old: str, new: str) -> bool:
        """Rename a file of the folder, if there is one; False if the folder is somebody else's. Worker
        thread.
        """
        files = self._environment.files
        with self._names_lock:
            if not self.retired and files.exists(join(self.directory, old)):
                files.rename(join(self.directory, old), join(self.directory, new))
            return not self.retired

    def replace_epochs(self, encoded: Callable[[], bytes]) -> None:
        """Replace the file of leader epochs, unless another log has the folder. May wait for the disk."""
        with self._making_lock:
            if not self.retired:
                self._environment.files.replace_file(self._epochs_path, encoded(), sync=False)
                self.note_epochs()

    def create_segment(self, base_offset: int, index_interval_bytes: int) -> Segment | None:
        """Make the files of a new segment; None if another log has the folder. May wait for the disk."""
        with self._making_lock:
            if self.retired:
                return None
            path = join(self.directory, offset_file(base_offset, ""))
            return Segment.create(self._environment.files, path, base_offset, index_interval_bytes)

    def create(self, name: str) -> bool:
        """Make an empty file in the folder; False if the folder is somebody else's. Worker thread."""
        with self._names_lock:
            if not self.retired:
                self._environment.files.write_file(join(self.directory, name), b"", sync=False)
                self.note_names()
            return not self.retired

    def remove(self, names: Sequence[str]) -> None:
        """Remove files of the folder, unless it is somebody else's. Worker thread."""
        with self._names_lock:
            for name in names if not self.retired else ():
                self._environment.files.remove(join(self.directory, name))

    def flush(self, segments: Sequence[Segment], target: int) -> None:
        """Make everything below `target` durable. Worker-safe.

        `target` must be read before `segments`: an append in between may roll.

        Raises:
            OSError: it is not durable.
        """
        with self.lock:
            if self._failure is not None:
                raise self._failure
            closed = [segment for segment in segments[:-1] if not segment.is_flushed]
            if self.retired or (target <= self.recovery_point and not closed and not self.pending_snapshots):
                return
            try:
                snapshots = self._write_side_files(closed)
            except OSError as error:
                self._environment.write_failed(error)
                raise
            try:
                self._sync(snapshots, closed, segments[-1] if segments[-1].base_offset < target else None)
            except OSError as error:
                if not self.retired and error.errno not in EXHAUSTED_ERRORS:
                    self._failure = error
                    self._environment.sync_failed(error)
                raise
            self.recovery_point = max(self.recovery_point, target)

    def _write_side_files(self, closed: Sequence[Segment]) -> list[Snapshot]:
        """Write what is kept in memory; the snapshots among it."""
        files, written = self._environment.files, []
        with self._names_lock:
            if self.retired:
                return []
            for segment in closed:
                segment.give_back_reserve()
                segment.save_indexes(final=True)
            while self.pending_snapshots:
                self.pending_snapshots[0].write(files, self.directory)
                self.note_names()
                written.append(self.pending_snapshots.pop(0))
        return written

    def _sync(self, snapshots: Sequence[Snapshot], closed: Sequence[Segment], active: Segment | None) -> None:
        """Files first, then the folders that name them."""
        files = self._environment.files
        for snapshot in snapshots:
            snapshot.sync(files, self.directory)
        with self._unsynced_lock:
            unsynced, self._unsynced = self._unsynced, set()
        try:
            folders = (self.directory, directory_name(self.directory))
            for path in sorted(unsynced.difference(folders)):
                sync_file(files, path)
            for segment in closed:
                segment.sync(with_indexes=True)
                segment.is_flushed = True
                if segment.is_idle:
                    segment.release_file()
            if active is not None:
                active.sync(with_indexes=False)
            for folder in folders:
                if folder in unsynced:
                    files.sync_directory(folder)
        except OSError:
            self._note(unsynced)
            raise
