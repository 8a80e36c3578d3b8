"""The files in a partition's folder, and the trust in them while the folder is opened.

    `.deleted`, `.cleaned`, `.tmp`   removed: leftovers of a deletion, compaction or replacement cut short
    `.swap`                          a finished compaction: put in place of its originals (`swap.py`)
    `.log`                           a segment; beside it its indexes and its known damages
    `.snapshot`                      producers at an offset
    leader-epoch-checkpoint          rebuilt from the batch headers if it is missing or garbage

Blocking; worker-safe, since no other thread knows the log yet.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_epochs, encode_epochs
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import (
    DAMAGED_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
    parse_offset_file,
)
from pykafka_broker.log.partition.density import noted_offset
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.segment import swap
from pykafka_broker.log.segment.header_walk import walk_headers
from pykafka_broker.log.segment.index import InvalidIndexError
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.records.batch import BatchHeader

logger = logging.getLogger("org.apache.kafka.storage.internals.log.LogLoader")

_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


class FoundLog:
    """One folder that is being opened. `read_folder` and `read_epochs` come first."""

    __slots__ = (
        "config",
        "dense_from",
        "epochs",
        "epochs_are_known",
        "files",
        "gaps_are_allowed",
        "identity",
        "is_clean",
        "name",
        "scan_from",
        "segments",
        "snapshot_offsets",
    )

    def __init__(
        self,
        files: FileSystem,
        identity: LogIdentity,
        config: LogConfig,
        *,
        is_clean: bool,
        gaps_are_allowed: bool,
    ) -> None:
        self.files = files
        self.identity = identity
        self.name = identity.name
        self.config = config
        #: The last stop was clean, and nothing found so far speaks against it.
        self.is_clean = is_clean
        #: Compaction is, or was, at work here.
        self.gaps_are_allowed = gaps_are_allowed
        #: The segments from here on have to be scanned, even if they are flushed; None: none of those.
        self.scan_from: int | None = None
        #: Compaction has removed nothing from here on; None without a note.
        self.dense_from: int | None = None
        #: Oldest first; at least one after `read_folder`.
        self.segments: list[Segment] = []
        self.snapshot_offsets: list[int] = []
        self.epochs = LeaderEpochs()
        #: False: they have to be rebuilt from the batch headers.
        self.epochs_are_known = False

    def path(self, offset: int, suffix: str) -> str:
        """The path of a file that is named by an offset."""
        return join(self.identity.directory, offset_file(offset, suffix))

    def begin_at(self, offset: int) -> None:
        """Have one empty segment, made now."""
        interval_bytes = self.config.index_interval_bytes
        self.segments = [Segment.create(self.files, self.path(offset, ""), offset, interval_bytes)]

    # --- files ------------------------------------------------------------------------------------

    def read_folder(self, log_start_offset: int) -> None:
        """Finish interrupted work and find the segments; if there are none, begin at `log_start_offset`."""
        self._list_files(self._finish_interrupted_work())
        if not self.segments:
            self.begin_at(log_start_offset)

    def _finish_interrupted_work(self) -> dict[str, int]:
        """Remove leftovers, put finished compactions in place; return the other files, logs with sizes."""
        directory = self.identity.directory
        entries = self.files.entries(directory, sizes_of=(LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX))
        sizes = {entry.name: entry.size for entry in entries}
        steps = swap.steps_at_start(sizes, lambda name: self._end_of_swap(name, sizes[name]))
        for old, new in steps:
            path = join(directory, old)
            if new is None:
                self.files.remove(path)
                del sizes[old]
                continue
            logger.info("%s: finishing a compaction: %s becomes %s", self.name, old, new)
            self.files.rename(path, join(directory, new))
            self.is_clean = False
            sizes[new] = sizes.pop(old)
        if not self.is_clean and steps:
            self.files.sync_directory(directory)
        return sizes

    def _end_of_swap(self, name: str, size: int) -> int:
        """The offset after the last batch of a cleaned segment; its base offset if it has no batch."""
        parsed = parse_offset_file(name[: -len(SWAP_SUFFIX)])
        assert parsed is not None
        end_offset = parsed[0]
        file = self.files.open(join(self.identity.directory, name), writable=False)
        for _, header in walk_headers(file.pread, 0, size):
            end_offset = header.next_offset
        return end_offset

    def _list_files(self, sizes: Mapping[str, int]) -> None:
        directory = self.identity.directory
        self.dense_from = noted_offset(sizes)
        for name in sorted(sizes):
            parsed = parse_offset_file(name)
            if parsed is None:
                continue
            offset, suffix = parsed
            stem = name[: -len(suffix)]
            if suffix == LOG_SUFFIX:
                path, interval_bytes = join(directory, stem), self.config.index_interval_bytes
                segment = Segment(self.files, path, offset, sizes[name], interval_bytes)
                segment.trust.unverified_end = segment.size
                self.segments.append(segment)
                if stem + DAMAGED_SUFFIX in sizes:
                    self._load_damages(segment)
                if stem + TXN_INDEX_SUFFIX in sizes:
                    self._load_aborted(segment)
            elif suffix == SNAPSHOT_SUFFIX:
                self.snapshot_offsets.append(offset)
            elif suffix in _INDEX_SUFFIXES and stem + LOG_SUFFIX not in sizes:
                self.files.remove(join(directory, name))

    def _load_damages(self, segment: Segment) -> None:
        try:
            segment.trust.load_damages()
        except (ValueError, TypeError):
            logger.warning("%s: the damage list of segment %d is unreadable", self.name, segment.base_offset)
            self.is_clean = False

    def _load_aborted(self, segment: Segment) -> None:
        try:
            segment.aborted.load()
        except InvalidIndexError as error:
            logger.warning("%s: scanning the log, segment %d: %s", self.name, segment.base_offset, error)
            self.is_clean = False
            if self.scan_from is None:
                self.scan_from = segment.base_offset

    # --- leader epochs ----------------------------------------------------------------------------

    @property
    def _epochs_path(self) -> str:
        return join(self.identity.directory, LEADER_EPOCH_CHECKPOINT)

    def read_epochs(self) -> None:
        """Read the checkpoint of leader epochs, and set `epochs_are_known` if it can be believed."""
        try:
            entries = decode_epochs(self.files.read_file(self._epochs_path))
        except FileNotFoundError:
            return
        except MalformedFile as error:
            logger.warning("%s: leader epochs are rebuilt from the log: %s", self.name, error)
            return
        self.epochs = LeaderEpochs(entries)
        self.epochs_are_known = bool(entries) or not any(segment.size for segment in self.segments)

    def forget_epochs(self) -> None:
        """The log contradicts the checkpoint."""
        logger.warning("%s: leader epochs are rebuilt: the checkpoint contradicts the log", self.name)
        self.epochs, self.epochs_are_known = LeaderEpochs(), False

    def note_epoch(self, header: BatchHeader) -> None:
        """Learn the leader epoch of a batch."""
        if header.partition_leader_epoch > self.epochs.latest:
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def finish_epochs(self, log_start_offset: int, log_end_offset: int) -> None:
        """Bring the epochs in line with the ends of the log, and write the changes.

        A log without records has no epoch, whatever the file says: it is replaced before the first record.
        """
        changed = self.epochs.truncate_from_end(log_end_offset) and bool(self.epochs.entries)
        if self.epochs.truncate_from_start(log_start_offset) or changed or not self.epochs_are_known:
            self.files.replace_file(self._epochs_path, encode_epochs(self.epochs.entries), sync=False)

    def rebuild_epochs(self) -> None:
        """Learn the leader epochs from the headers of all batches, not only of those that were scanned."""
        self.epochs = LeaderEpochs()
        for segment in self.segments:
            for _, header in segment.headers(0):
                self.note_epoch(header)
