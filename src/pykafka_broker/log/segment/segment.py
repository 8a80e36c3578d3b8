"""One segment: its `.log` file, and its parts. Appends go to the last segment of a log, reads to any.

    segment.files     the names of all its files: opened, renamed and removed together (segment_files.py)
    segment.indexes   where its batches are, by offset and by time (index_pair.py)
    segment.aborted   its aborted transactions (aborted_txns.py)
    segment.trust     its verified spans, and its ranges fenced off as damaged (trust.py)

The file is opened on first use and can be given back at any time (`release_file`).

Everything here runs on the event loop thread, except the methods documented as worker-safe: they only
add to the segment's own caches in ways that do not disturb a concurrent append.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pykafka_broker.log.disk.files import File, FileSystem, write_fully
from pykafka_broker.log.disk.names import LOG_SUFFIX
from pykafka_broker.log.segment.aborted_txns import AbortedTxns
from pykafka_broker.log.segment.header_walk import walk_headers
from pykafka_broker.log.segment.index import OffsetIndex, TimeIndex
from pykafka_broker.log.segment.index_pair import IndexPair
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.log.segment.trust import Trust
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    SMALLEST_BATCH_LENGTH,
    BatchHeader,
)

_LOCATE_BYTES = 4096


class Segment:
    """Batches from `base_offset` on; `size` is the number of bytes that are written and may be served."""

    __slots__ = (
        "_file",
        "aborted",
        "base_offset",
        "files",
        "first_append_ms",
        "has_reserve",
        "has_torn_tail",
        "indexes",
        "is_flushed",
        "is_idle",
        "is_pinned",
        "jitter_ms",
        "size",
        "trust",
        "write_behind_at",
    )

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, size: int, index_interval_bytes: int
    ) -> None:
        self.files = SegmentFiles(files, path)
        self.base_offset = base_offset
        self.size = size
        self.indexes = IndexPair(self.files, base_offset, index_interval_bytes)
        self.aborted = AbortedTxns(self.files)
        self.trust = Trust(self.files)
        self._file: File | None = None
        #: The milliseconds by which the segment is rolled before `segment.ms` has passed.
        self.jitter_ms = 0
        #: When this process wrote the first batch, or found it at its start; -1 before.
        self.first_append_ms = -1
        #: The disk keeps room for more than `size`.
        self.has_reserve = False
        #: Log and indexes are on stable storage; an active segment never counts as flushed.
        self.is_flushed = False
        #: When the file has grown to this size, it is synced in the background.
        self.write_behind_at = 0
        #: A failed append may have left bytes behind `size`; they are cut off before the next append.
        self.has_torn_tail = False
        #: Not read since the last idle check; if so at the next check, descriptor and indexes are given back.
        self.is_idle = True
        #: Its names belong to other files from now on: descriptor and indexes must stay in memory.
        self.is_pinned = False

    @classmethod
    def create(
        cls,
        files: FileSystem,
        path: str,
        base_offset: int,
        index_interval_bytes: int,
        *,
        reserved_bytes: int = 0,
    ) -> Segment:
        """A new, empty segment with its files; the disk keeps room for the log to grow to `reserved_bytes`.

        Raises:
            OSError: the disk refuses; no file is left.
        """
        segment = cls(files, path, base_offset, 0, index_interval_bytes)
        segment._file = segment.files.open(LOG_SUFFIX, create=True)
        try:
            segment.indexes.create()
            if reserved_bytes:
                segment.file.reserve(reserved_bytes)
                segment.has_reserve = True
        except OSError:
            segment.files.remove_all()
            raise
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes)"

    @property
    def path(self) -> str:
        """Path of its files without their suffix."""
        return self.files.path

    @property
    def file(self) -> File:
        """The `.log` file, opened on first use."""
        file = self._file
        if file is None:
            file = self._file = self.files.open(LOG_SUFFIX)
        return file

    def open_to_read(self) -> None:
        """Hold the `.log` file open, only for reading, so that it can be read after it was removed.

        Raises:
            FileNotFoundError: it is gone.
        """
        self._file = self.files.open(LOG_SUFFIX, writable=False)

    # --- appending --------------------------------------------------------------------------------

    def append(
        self,
        records: Buffer,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        now_ms: int,
    ) -> None:
        """Write whole batches at the end.

        Raises:
            OSError: nothing of it is visible, and `has_torn_tail` is set.
        """
        position = self._write(records, now_ms)
        size = len(records)
        self.indexes.note_batch(self, position, size, last_offset, max_timestamp, offset_of_max_timestamp)

    def append_batches(self, records: Buffer, headers: Sequence[BatchHeader], now_ms: int) -> None:
        """Write these whole batches, which fill `records`, at the end, all at once.

        Raises:
            OSError: nothing of them is visible, and `has_torn_tail` is set.
        """
        position = self._write(records, now_ms)
        note = self.indexes.note_batch
        for header in headers:
            last_offset, batch_bytes = header.last_offset, header.size_in_bytes
            note(self, position, batch_bytes, last_offset, header.max_timestamp, last_offset)
            position += batch_bytes

    def _write(self, records: Buffer, now_ms: int) -> int:
        """Write at the end; returns the position. For errors see `append`."""
        position = self.size
        size = len(records)
        if self.has_torn_tail:
            self.cut_torn_tail()
        file = self._file or self.file
        try:
            if file.pwrite(records, position) != size:
                write_fully(file, records, position)
        except OSError:
            self.has_torn_tail = True
            raise
        self.size = position + size
        if self.first_append_ms < 0:
            self.first_append_ms = now_ms
        return position

    def cut_torn_tail(self) -> None:
        """Remove the bytes that a failed append left after the end; OSError if the disk refuses even that."""
        self.file.truncate(self.size)
        self.has_torn_tail = False

    def give_back_reserve(self) -> None:
        """Free the room that was not needed. Worker-safe once the segment is not appended to any more."""
        if self.has_reserve:
            self.file.truncate(self.size)
            self.has_reserve = False

    def save_indexes(self, *, final: bool) -> None:
        """Bring the index files up to date; `final` for a segment that is closed. Worker-safe."""
        self.indexes.save(self, final=final)

    def sync(self, *, with_indexes: bool) -> None:
        """Make the log and its aborted transactions durable, and the index files if asked. Worker-safe."""
        self.file.sync()
        self.aborted.sync()
        if with_indexes:
            self.indexes.sync()

    # --- finding batches --------------------------------------------------------------------------

    @property
    def index(self) -> OffsetIndex:
        """The offset index. Worker-safe; may wait for the disk."""
        index = self.indexes.offset_index
        return index if index is not None else self.indexes.by_offset(self)

    @property
    def time_index(self) -> TimeIndex:
        """The time index. Worker-safe; may wait for the disk."""
        index = self.indexes.time_index
        return index if index is not None else self.indexes.by_time(self)

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from `position` (a batch start) on, without those in damaged
        ranges. Worker-safe; may wait for the disk.
        """
        read, size = self.file.pread, self.size
        for damage in self.trust.damages:
            if damage.end_position > position:  # an index may point inside the range
                yield from walk_headers(read, position, min(damage.position, size))
                position = damage.end_position
        yield from walk_headers(read, position, size)

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """(position, header) of the first batch whose last offset is >= `offset`. Worker-safe; may wait."""
        for position, header in self.headers(self.index.position_before(offset)):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header
        return None

    def locate_cached(self, offset: int) -> tuple[int, BatchHeader] | None:
        """As `locate`, only from memory and the page cache: None when that is not enough. Never waits."""
        index = self.indexes.offset_index
        if index is None or self.trust.damages:
            return None
        read = self.file.pread_cached
        position, size = index.position_before(offset), self.size
        unpack = HEADER.unpack_from
        while position < size:
            window = read(min(_LOCATE_BYTES, size - position), position)
            if window is None:
                return None
            at = 0
            while at + HEADER_BYTES <= len(window):
                fields = unpack(window, at)
                if fields[1] < SMALLEST_BATCH_LENGTH or fields[3] != MAGIC:
                    return None
                if fields[0] + fields[6] >= offset:
                    if position + at + fields[1] + LOG_OVERHEAD_BYTES > size:
                        return None  # half a batch, where the file was cut
                    return position + at, BatchHeader._make(fields)
                at += fields[1] + LOG_OVERHEAD_BYTES
            position += at
            if at == 0:
                return None
        return None

    # --- timestamps -------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of any record, -1 if there is none. May read the end of the time index."""
        return self.indexes.max_timestamp(self)

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the batch that carries `max_timestamp`."""
        return self.indexes.offset_of_max_timestamp(self)

    def carries(self, timestamp: int, offset: int) -> bool:
        """Whether the batch that holds `offset` has this as its greatest timestamp. Worker-safe; may wait."""
        found = self.locate(offset)
        return found is not None and found[1].max_timestamp == timestamp

    def first_batch_timestamp(self) -> int:
        """The greatest timestamp of the first batch, -1 if there is none. Worker-safe; may wait."""
        indexes = self.indexes
        if indexes.first_timestamp < 0:
            for _, header in self.headers(0):
                indexes.first_timestamp = header.max_timestamp
                break
        return indexes.first_timestamp

    def newest_timestamp_or_mtime(self) -> int:
        """The time that retention uses: the newest record's timestamp, or the file's if no record has one."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.files.modified_ms(LOG_SUFFIX)

    # --- truncation -------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove every batch that holds `offset` or a later one; returns how many bytes went."""
        found = self.locate(offset)
        # `locate` skips damaged ranges: one that holds the offset is removed as well.
        positions = [] if found is None else [found[0]]
        positions += [damage.position for damage in self.trust.damages if damage.next_offset > offset]
        if not positions:
            return 0
        position = min(positions)
        removed = self.size - position
        self.indexes.hold(self.index, self.time_index)
        self.file.truncate(position)
        self.size = position
        self.indexes.truncate_to(self, offset)
        self.aborted.truncate_to(offset)
        self.trust.truncate_to(position)
        return removed

    # --- held in memory, and given back -----------------------------------------------------------

    @property
    def holds_resources(self) -> bool:
        """Whether a descriptor is open, or an index that could be read again is in memory."""
        indexes = self.indexes
        return self._file is not None or (indexes.offset_index is not None and indexes.is_saved)

    def pin(self) -> None:
        """Read everything that is ever needed by name, and keep it. Worker-safe."""
        self.is_pinned = True
        self._file = self.file
        self.indexes.hold(self.index, self.time_index)
        assert self.max_timestamp >= -1

    def release(self) -> None:
        """Give back the descriptor and the indexes of a closed segment; both return on demand."""
        if self.is_pinned:
            return
        self.indexes.release(keeps_indexes=not self.size)
        self.release_file()

    def release_file(self) -> None:
        """Give back the descriptor; the file is opened again when needed."""
        if not self.has_torn_tail and not self.is_pinned:
            self._file = None

    def copy_to_scan(self) -> Segment:
        """The same files as a segment of its own, to be scanned while this one is read."""
        indexes, files = self.indexes, self.files
        copy = Segment(files.system, files.path, self.base_offset, self.size, indexes.interval_bytes)
        copy.trust.damages = self.trust.damages
        return copy

    def adopt(self, scanned: Segment) -> None:
        """Take over the findings of the scan of a copy. Worker-safe."""
        self.indexes.hold(scanned.index, scanned.time_index)
        self.trust.note_scanned(scanned.trust.damages)


def segment_ends(segments: Sequence[Segment], end_offset: int) -> list[int]:
    """The end offset of each segment: the base offset of the next, for the last one `end_offset`."""
    return [*[segment.base_offset for segment in segments[1:]], end_offset]
