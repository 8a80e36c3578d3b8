"""From which offset on a compacted log has no gaps but those that were lost: noted in a file's name.

    00000000000000004711.dense.deleted          an empty file in the partition's folder

After a power cut a closed segment that was not synced may be gone from the middle of a log. Compaction leaves
gaps too, so in a compacted log this shows only where compaction has not been yet. Hence the note: its offset
is raised, and the folder synced, before a cleaned segment gets its name; what is appended behind is dense.

Only this broker keeps the note true. Apache Kafka removes everything that ends in `.deleted` when it opens a
folder, before its cleaner can be at work, and the sync that makes the name of a cleaned segment durable makes
the removal so. A log without a note is not judged: one that Apache Kafka has had, one from before there were
notes, one that is copied from another that has gaps. It gets one for what this process appends (`begin`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.disk.names import DENSE_SUFFIX, offset_file, parse_offset_file
from pykafka_broker.log.partition.flushing import Flusher

logger = logging.getLogger(__name__)


def noted_offset(names: Iterable[str]) -> int | None:
    """What the notes in a folder say; None if there is none. Of several the last one written is true."""
    parsed = [parse_offset_file(name) for name in names if name.endswith(DENSE_SUFFIX)]
    return max([found[0] for found in parsed if found is not None], default=None)


class Density:
    """The note of one log. Any thread."""

    __slots__ = ("_dense_from", "_files", "_flusher", "_lock", "noted")

    def __init__(self, files: FileSystem, flusher: Flusher, log_end_offset: int) -> None:
        self._files = files
        self._flusher = flusher
        self._lock = threading.Lock()
        #: Nothing is missing from here on but what was lost; None: nobody knows.
        self.noted: int | None = None
        #: What this process appends is dense; None while it copies.
        self._dense_from: int | None = log_end_offset

    def begin(self) -> None:
        """Make a note if there is none. May wait for the disk."""
        with self._lock:
            if self.noted is not None or self._dense_from is None:
                return
            try:
                if self._flusher.create(offset_file(self._dense_from, DENSE_SUFFIX)):
                    self.noted = self._dense_from
            except OSError as error:  # then the log is not judged
                logger.debug("%s: no note of gaps can be made: %s", self._flusher.directory, error)

    def allow_gaps_below(self, offset: int) -> None:
        """Compaction is about to leave out what it likes below `offset`. Waits for the disk.

        Raises:
            OSError: the disk refused; then nothing may be left out.
        """
        with self._lock:
            if self._dense_from is not None:
                self._dense_from = max(self._dense_from, offset)
            if self.noted is None or self.noted >= offset:
                return
            old, new = offset_file(self.noted, DENSE_SUFFIX), offset_file(offset, DENSE_SUFFIX)
            if self._flusher.rename(old, new):
                self._files.sync_directory(self._flusher.directory)
                self.noted = offset

    def copies_gaps(self) -> None:
        """What is about to be appended has gaps, as a copy of a compacted log has. May wait for the disk.

        Raises:
            OSError: the disk refused; then it must not be appended.
        """
        with self._lock:
            self._dense_from = None
            if self.noted is not None:
                self._flusher.remove([offset_file(self.noted, DENSE_SUFFIX)])
                self._files.sync_directory(self._flusher.directory)
                self.noted = None

    def ends_copying(self, log_end_offset: int) -> None:
        """What comes now is appended by this broker."""
        with self._lock:
            self._dense_from = log_end_offset
