"""Notes in a file's name from which offset on a compacted log is dense: a gap above it means lost records.

    00000000000000004711.dense.deleted          an empty file in the partition's folder

After a power cut a closed segment that was not synced may be gone from the middle of a log. Compaction leaves
gaps too, so a gap proves a loss only past the offsets that the cleaner has reached. The note holds that
offset. Before a cleaned segment gets its name, the offset of the note is raised and the folder synced;
everything appended later is dense.

Only this broker keeps the note true. Apache Kafka removes every file that ends in `.deleted` when it opens a
folder, before its cleaner starts; the sync that makes the name of a cleaned segment durable also makes that
removal durable. A log without a note is not judged: Apache Kafka has opened it, it is older than the notes,
or it was copied from a log with gaps. `begin` gives it a note for the appends of this process.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.names import DENSE_SUFFIX, offset_file, parse_offset_file
from pykafka_broker.log.partition.append_errors import append_failed
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.state import LogState

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")


def noted_offset(names: Iterable[str]) -> int | None:
    """The offset of the note in a folder, None without one; of several, the greatest."""
    parsed = [parse_offset_file(name) for name in names if name.endswith(DENSE_SUFFIX)]
    return max([found[0] for found in parsed if found is not None], default=None)


class Density:
    """The note of one log. Any thread."""

    __slots__ = ("_appends_dense_from", "_environment", "_folder", "_lock", "_state", "dense_from")

    def __init__(
        self, state: LogState, environment: Environment, folder: LogFolder, *, dense_from: int | None
    ) -> None:
        self._state = state
        self._environment = environment
        self._folder = folder
        self._lock = threading.Lock()
        #: Offsets that are missing from here on were lost; None without a note.
        self.dense_from = dense_from
        #: From here on this process appends without gaps; None while it copies.
        self._appends_dense_from: int | None = state.log_end_offset

    def begin(self) -> None:
        """Make a note if there is none. May wait for the disk."""
        with self._lock:
            if self.dense_from is not None or self._appends_dense_from is None:
                return
            try:
                if self._folder.create_file(offset_file(self._appends_dense_from, DENSE_SUFFIX)):
                    self.dense_from = self._appends_dense_from
            except OSError as error:  # then the log is not judged
                logger.debug("%s: no note of gaps can be made: %s", self._state.directory, error)

    def allow_gaps_below(self, offset: int) -> None:
        """Compaction is about to leave out records below `offset`. Waits for the disk.

        Raises:
            OSError: the disk refused; then no record may be left out.
        """
        with self._lock:
            if self._appends_dense_from is not None:
                self._appends_dense_from = max(self._appends_dense_from, offset)
            if self.dense_from is None or self.dense_from >= offset:
                return
            old, new = offset_file(self.dense_from, DENSE_SUFFIX), offset_file(offset, DENSE_SUFFIX)
            if self._folder.rename_file(old, new):
                self._folder.sync()
                self.dense_from = offset

    def copies_gaps(self) -> None:
        """The next append has gaps, as a copy of a compacted log has. May wait for the disk.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refused; then there must be no append.
        """
        try:
            with self._lock:
                self._appends_dense_from = None
                if self.dense_from is not None:
                    self._folder.remove_files([offset_file(self.dense_from, DENSE_SUFFIX)])
                    self._folder.sync()
                    self.dense_from = None
        except OSError as error:
            state = self._state
            raise append_failed(self._environment, state.name, state.active, error) from error

    def ends_copying(self) -> None:
        """From the log end on, this broker appends again."""
        with self._lock:
            self._appends_dense_from = self._state.log_end_offset
