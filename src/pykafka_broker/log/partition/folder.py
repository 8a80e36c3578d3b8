"""The files of a log's folder, made, renamed and removed in worker threads.

The folder of a deleted partition is renamed, and its name may be used again at once: from `retire` on
(`LogState.retired`) no worker touches a file by name, and `settle` waits for those that still do.

Files and folders that have changed and are not durable yet are noted here; a flush (`flushing.py`) syncs
them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import LEADER_EPOCH_CHECKPOINT, offset_file
from pykafka_broker.log.partition.producer_snapshots import Snapshot
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.segment.segment import Segment


class LogFolder:
    """The folder of one log. Any thread; most methods may wait for the disk."""

    __slots__ = ("_files", "_making_lock", "_names_lock", "_state", "_unsynced", "_unsynced_lock")

    def __init__(self, state: LogState, files: FileSystem, unsynced: frozenset[str]) -> None:
        self._state = state
        self._files = files
        #: Small files and folders whose latest change is not durable.
        self._unsynced: set[str] = set(unsynced)
        #: Held while side files are written or renamed in a worker thread.
        self._names_lock = threading.Lock()
        #: Held while a file that an append needs is made: producers wait for this lock only.
        self._making_lock = threading.Lock()
        #: Held for a moment only.
        self._unsynced_lock = threading.Lock()

    @property
    def _epochs_path(self) -> str:
        return join(self._state.directory, LEADER_EPOCH_CHECKPOINT)

    # --- changes that are not durable yet ------------------------------------------------------------------

    def note_names(self) -> None:
        """A file was created or renamed in the folder."""
        self.note_unsynced({self._state.directory})

    def note_unsynced(self, paths: set[str]) -> None:
        """These files and folders were changed."""
        with self._unsynced_lock:
            self._unsynced = self._unsynced | paths

    def take_unsynced(self) -> set[str]:
        """The files and folders to sync now; they count as synced from here on."""
        with self._unsynced_lock:
            unsynced, self._unsynced = self._unsynced, set()
        return unsynced

    # --- the folder itself ------------------------------------------------------------------------

    def rename(self, directory: str) -> None:
        """Give the folder another name in the same log directory; nothing may be flushed meanwhile.

        Raises:
            OSError: it cannot be renamed; nothing has changed.
        """
        state, old = self._state, self._state.directory
        self._files.rename(old, directory)
        state.identity = state.identity._replace(directory=directory)
        with self._unsynced_lock:
            moved = {
                path if path == directory_name(old) else directory + path[len(old) :]
                for path in self._unsynced
            }
            self._unsynced = moved | {directory, directory_name(directory)}
        for segment in state.segments:
            segment.files.path = join(directory, offset_file(segment.base_offset, ""))

    def settle(self) -> None:
        """Return when no worker touches a file of the retired folder by name any more. May take long."""
        with self._names_lock, self._making_lock:
            assert self._state.retired

    # --- its files --------------------------------------------------------------------------------

    def set_segments_aside(self, segments: Sequence[Segment], suffix: str) -> None:
        """Rename the files of deleted segments. Worker thread."""
        with self._names_lock:
            for segment in segments if not self._state.retired else ():
                segment.files.set_all_aside(suffix)

    def rename_file(self, old: str, new: str) -> bool:
        """Rename a file, if it is there; False if the folder is another log's. Worker thread."""
        directory = self._state.directory
        with self._names_lock:
            if not self._state.retired and self._files.exists(join(directory, old)):
                self._files.rename(join(directory, old), join(directory, new))
            return not self._state.retired

    def create_file(self, name: str) -> bool:
        """Make an empty file; False if the folder is another log's. Worker thread."""
        with self._names_lock:
            if not self._state.retired:
                self._files.write_file(join(self._state.directory, name), b"", sync=False)
                self.note_names()
            return not self._state.retired

    def remove_files(self, names: Sequence[str]) -> None:
        """Remove files, unless the folder is another log's. Worker thread."""
        with self._names_lock:
            for name in names if not self._state.retired else ():
                self._files.remove(join(self._state.directory, name))

    def sync(self) -> None:
        """Make the names in the folder durable.

        Raises:
            OSError: the disk refused.
        """
        self._files.sync_directory(self._state.directory)

    def replace_epochs(self, encoded: Callable[[], bytes]) -> None:
        """Replace the file of leader epochs, unless the folder is another log's."""
        with self._making_lock:
            if not self._state.retired:
                path = self._epochs_path
                self._files.replace_file(path, encoded(), sync=False)
                self.note_unsynced({path, self._state.directory})

    def create_segment(self, base_offset: int) -> Segment | None:
        """Make the files of a new segment; None if the folder is another log's. With `preallocate`, the disk
        reserves room for all of it, and gets back the unused rest when the segment is closed.
        """
        with self._making_lock:
            if self._state.retired:
                return None
            path = join(self._state.directory, offset_file(base_offset, ""))
            config = self._state.config
            return Segment.create(
                self._files,
                path,
                base_offset,
                config.index_interval_bytes,
                reserved_bytes=config.segment_bytes if config.preallocate else 0,
            )

    def write_side_files(self, closed: Sequence[Segment], snapshots: list[Snapshot]) -> list[Snapshot]:
        """Write the indexes of closed segments and the snapshots, each of which leaves the list; return the
        written snapshots. Does nothing if the folder is another log's. Worker thread.
        """
        written: list[Snapshot] = []
        with self._names_lock:
            if self._state.retired:
                return written
            for segment in closed:
                segment.give_back_reserve()
                segment.save_indexes(final=True)
            while snapshots:
                snapshots[0].write(self._files, self._state.directory)
                self.note_names()
                written.append(snapshots.pop(0))
        return written
