"""One segment: a `.log` file with its indexes. Appends go to the last segment of a log, reads to any.

The indexes of the segment being written live in memory and reach their files when it is rolled, flushed or
closed: they can always be rebuilt from the log, so a crash costs a scan of what was not flushed and never
data. Those of a closed segment are read when first needed and may be dropped again (`release`). Files open
on first use.

Everything here runs on the event loop thread, except the methods documented as worker-safe: they only
append to the segment's own caches in ways that do not disturb a concurrent append.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Lock

from pykafka_broker.log.disk.files import Buffer, File, FileSystem, sync_file, write_fully
from pykafka_broker.log.disk.names import (
    DAMAGED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from pykafka_broker.log.segment.batch_walk import MAX_RELATIVE_OFFSET, Damage, walk
from pykafka_broker.log.segment.index import (
    ABORTED_TXN_BYTES,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    AbortedTxn,
    InvalidIndexError,
    OffsetIndex,
    TimeIndex,
    last_offset_entry,
    last_time_entry,
    read_aborted_txns,
)
from pykafka_broker.protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    SMALLEST_BATCH_LENGTH,
    BatchHeader,
)

#: The newest batches of the active segment are known exactly; older ones through the sparse index.
_TAIL_BATCHES = 256
_LOCATE_BYTES = 4096
#: Held for a moment while what one thread has checked is added to what others have.
_checks_lock = Lock()


class Segment:
    """Batches from `base_offset` on; `size` is what has been written and may be served."""

    __slots__ = (
        "_file",
        "_files",
        "_index",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_saved_txns",
        "_time_index",
        "aborted_txns",
        "base_offset",
        "bytes_since_index_entry",
        "checked_spans",
        "damages",
        "first_append_ms",
        "first_timestamp",
        "has_reserve",
        "has_torn_tail",
        "index_interval_bytes",
        "index_is_saved",
        "is_distrusted",
        "is_flushed",
        "is_idle",
        "is_pinned",
        "jitter_ms",
        "path",
        "size",
        "tail_first_offset",
        "tail_last_offsets",
        "tail_positions",
        "unchecked_end",
        "was_scanned",
        "write_behind_at",
    )

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, size: int, index_interval_bytes: int
    ) -> None:
        self._files = files
        #: Path of its files without their suffix.
        self.path = path
        self.base_offset = base_offset
        self.size = size
        self.index_interval_bytes = index_interval_bytes
        self.jitter_ms = 0
        self._file: File | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        #: Max timestamp of the first batch, which decides when to roll by time; -1 while empty or unknown.
        self.first_timestamp = -1
        #: When the first batch was written, as far as this process knows; -1 before.
        self.first_append_ms = -1
        #: The disk keeps room for more than `size`.
        self.has_reserve = False
        self.bytes_since_index_entry = 0
        self.index_is_saved = True
        #: The disk did not give what it should: nothing is answered from here before it was read.
        self.is_distrusted = False
        #: Log and indexes are on stable storage; an active segment never counts as flushed.
        self.is_flushed = False
        #: When the file has grown to this, it is synced in the background.
        self.write_behind_at = 0
        #: A failed append may have left bytes behind `size`; they go before the next append.
        self.has_torn_tail = False
        #: In the order of their markers; of these, the first `_saved_txns` are in the `.txnindex`.
        self.aborted_txns: list[AbortedTxn] = []
        self._saved_txns = 0
        self.damages: tuple[Damage, ...] = ()
        #: Every batch was checked by this process.
        self.was_scanned = False
        #: What lies below was here before this process, which believes only what it has checked: see
        #: `is_checked`.
        self.unchecked_end = 0
        #: Of that, the (start, end) that were checked, in order and apart; replaced, not changed.
        self.checked_spans: tuple[tuple[int, int], ...] = ()
        #: Nobody has read here since the last look; then descriptor and indexes are given back.
        self.is_idle = True
        #: Its names belong to others from now on: descriptor and indexes must stay.
        self.is_pinned = False
        self.tail_first_offset = base_offset
        self.tail_last_offsets = array("q")
        self.tail_positions = array("q")

    @classmethod
    def create(cls, files: FileSystem, path: str, base_offset: int, index_interval_bytes: int) -> Segment:
        """A new, empty segment with its files."""
        segment = cls(files, path, base_offset, 0, index_interval_bytes)
        segment._file = files.open(path + LOG_SUFFIX, create=True)
        segment._index = OffsetIndex(base_offset)
        segment._time_index = TimeIndex(base_offset)
        segment._max_timestamp = -1
        try:
            files.write_file(path + INDEX_SUFFIX, b"", sync=False)
            files.write_file(path + TIME_INDEX_SUFFIX, b"", sync=False)
        except OSError:
            segment.unlink()
            raise
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes)"

    @property
    def file(self) -> File:
        """The `.log` file, opened on first use."""
        file = self._file
        if file is None:
            file = self._file = self._files.open(self.path + LOG_SUFFIX)
        return file

    def open_to_read(self) -> None:
        """Hold the `.log` file, whatever becomes of its name, and only to read it.

        Raises:
            FileNotFoundError: it is gone.
        """
        self._file = self._files.open(self.path + LOG_SUFFIX, writable=False)

    # --- appending --------------------------------------------------------------------------------

    def append(
        self, records: Buffer, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int
    ) -> None:
        """Write whole batches behind what is there. On an error nothing is visible, and `has_torn_tail` is
        set.
        """
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
        self.note_batch(position, size, last_offset, max_timestamp, offset_of_max_timestamp)

    def note_batch(
        self, position: int, size: int, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int
    ) -> None:
        """Account for bytes that are in the file: timestamps, indexes, the exactly known tail."""
        if position == 0:
            self.first_timestamp = max_timestamp
        newest = self._max_timestamp
        if max_timestamp > (self.max_timestamp if newest is None else newest):
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = offset_of_max_timestamp
        if self.bytes_since_index_entry > self.index_interval_bytes:
            self.index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self.bytes_since_index_entry = 0
        self.bytes_since_index_entry += size
        self.index_is_saved = False
        tail = self.tail_positions
        if len(tail) >= _TAIL_BATCHES:
            drop = _TAIL_BATCHES // 2
            self.tail_first_offset = self.tail_last_offsets[drop - 1] + 1
            del tail[:drop]
            del self.tail_last_offsets[:drop]
        tail.append(position)
        self.tail_last_offsets.append(last_offset)

    def reserve(self, size_bytes: int) -> None:
        """Have the disk keep room for the file to grow to `size_bytes`; its size stays."""
        self.file.reserve(size_bytes)
        self.has_reserve = True

    def give_back_reserve(self) -> None:
        """Let others have the room that was not needed. Worker-safe once nobody appends any more."""
        if self.has_reserve:
            self.file.truncate(self.size)
            self.has_reserve = False

    def cut_torn_tail(self) -> None:
        """Remove what a failed append left behind the end; raises OSError while the disk refuses even
        that.
        """
        self.file.truncate(self.size)
        self.has_torn_tail = False

    def append_aborted(self, txn: AbortedTxn) -> None:
        """Add an aborted transaction to the `.txnindex`. On an error it is in memory alone until the next one
        is added, or the segment is synced.
        """
        self.aborted_txns.append(txn)
        self._save_aborted_txns()

    def _save_aborted_txns(self) -> None:
        """Append to the `.txnindex` what it does not have yet. What is in it stays as it is."""
        saved = self._saved_txns
        missing = self.aborted_txns[saved:]
        if not missing:
            return
        path = self.path + TXN_INDEX_SUFFIX
        try:
            file = self._files.open(path)
        except FileNotFoundError:
            file = self._files.open(path, create=True)
        data = b"".join([entry.to_bytes() for entry in missing])
        write_fully(file, data, saved * ABORTED_TXN_BYTES)
        self._saved_txns = saved + len(missing)

    # --- indexes ----------------------------------------------------------------------------------

    @property
    def indexes_loaded(self) -> bool:
        return self._index is not None and self._time_index is not None

    @property
    def holds_resources(self) -> bool:
        """Whether a descriptor is open, or an index that could be read again is in memory."""
        return self._file is not None or (self._index is not None and self.index_is_saved)

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file or rebuilt when first needed. Worker-safe; may wait for the
        disk.
        """
        index = self._index
        if index is None:
            try:
                data = self._files.read_file(self.path + INDEX_SUFFIX)
                index = OffsetIndex.from_bytes(data, self.base_offset, max(self.size, 1))
                if not len(index) and self.size > 2 * self.index_interval_bytes:
                    raise InvalidIndexError("offset index is empty")
            except (FileNotFoundError, InvalidIndexError):
                index = self._rebuild()[0]
            if self._index is None:  # another thread may have been faster, and been appended to
                self._index = index
            return self._index
        return index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, read from its file or rebuilt when first needed. Worker-safe; may wait for the
        disk.
        """
        index = self._time_index
        if index is None:
            try:
                index = TimeIndex.from_bytes(
                    self._files.read_file(self.path + TIME_INDEX_SUFFIX), self.base_offset
                )
                if not len(index) and self.size:
                    raise InvalidIndexError("time index is empty")
                if self.size and not self._is_newest(*index.last):
                    raise InvalidIndexError("time index does not end with the newest timestamp")
            except (FileNotFoundError, InvalidIndexError):
                index = self._rebuild()[1]
            if self._time_index is None:
                self._time_index = index
            return self._time_index
        return index

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of any record, -1 if there is none. May read the end of the time index."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self._last_time_entry()
        return self._max_timestamp

    def _last_time_entry(self) -> tuple[int, int]:
        if self._time_index is None:
            last = last_time_entry(self._end_of_file(TIME_INDEX_SUFFIX, TIME_ENTRY_BYTES), self.base_offset)
            if last is not None and self._is_newest(*last):
                return last
        return self.time_index.last

    def _is_newest(self, timestamp: int, offset: int) -> bool:
        """Whether the batch that holds `offset` carries this timestamp, and none at the end of the segment a
        greater one: else the time index has lost its end, or is not of this log.
        """
        last = self.last_index_entry()
        is_carried = False
        for _, header in self.headers(last[1] if last is not None else 0):
            if header.max_timestamp > timestamp:
                return False
            is_carried = is_carried or (header.max_timestamp == timestamp and header.last_offset >= offset)
        return is_carried or self.carries(timestamp, offset)

    def carries(self, timestamp: int, offset: int) -> bool:
        """Whether the batch that holds `offset` has this as its greatest timestamp. Worker-safe; may wait."""
        found = self.locate(offset)
        return found is not None and found[1].max_timestamp == timestamp

    def last_index_entry(self) -> tuple[int, int] | None:
        """(offset, position) of the newest entry of the offset index, without reading all of it if that can
        be.
        """
        if self._index is None:
            last = last_offset_entry(self._end_of_file(INDEX_SUFFIX, OFFSET_ENTRY_BYTES), self.base_offset)
            if last is not None and last[1] < self.size:
                return last
        index = self.index
        return (index.base_offset + index.relative_offsets[-1], index.positions[-1]) if len(index) else None

    def _end_of_file(self, suffix: str, size: int) -> bytes:
        """The last `size` bytes of a side file; fewer if it has no more, none if there is no such file."""
        try:
            file = self._files.open(self.path + suffix, writable=False)
        except FileNotFoundError:
            return b""
        length = file.size()
        return file.pread(size, length - size) if length >= size else b""

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the batch that carries `max_timestamp`."""
        assert self.max_timestamp >= -1
        return self._offset_of_max_timestamp

    def newest_timestamp_or_mtime(self) -> int:
        """What retention goes by: the newest record's timestamp, or the file's age if no record has one."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.path + LOG_SUFFIX)

    def first_batch_timestamp(self) -> int:
        """The greatest timestamp of the first batch, -1 if there is none. Worker-safe; may wait."""
        if self.first_timestamp < 0:
            for _, header in self.headers(0):
                self.first_timestamp = header.max_timestamp
                break
        return self.first_timestamp

    def _rebuild(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes from the batch headers, up to the first that cannot be true; written to their
        files.
        """
        index, times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        indexed = 0
        newest = (-1, self.base_offset)
        next_offset = self.base_offset
        for position, header in self.headers(0):
            if not next_offset <= header.base_offset <= self.base_offset + MAX_RELATIVE_OFFSET:
                break
            next_offset = header.next_offset
            if header.max_timestamp > newest[0]:
                newest = (header.max_timestamp, header.last_offset)
            if position - indexed > self.index_interval_bytes:
                index.append(header.last_offset, position)
                times.maybe_append(*newest)
                indexed = position
        times.maybe_append(*newest)
        with suppress(OSError):  # what cannot be kept is made again
            self._files.write_file(self.path + INDEX_SUFFIX, index.to_bytes(), sync=False)
            self._files.write_file(self.path + TIME_INDEX_SUFFIX, times.to_bytes(), sync=False)
        return index, times

    def unscanned_copy(self) -> Segment:
        """The same files as a segment of its own, to be scanned while this one is read."""
        copy = Segment(self._files, self.path, self.base_offset, self.size, self.index_interval_bytes)
        copy.damages = self.damages
        return copy

    def adopt(self, scanned: Segment) -> None:
        """Take over what the scan of a copy has found. Worker-safe."""
        self._index, self._time_index = scanned.index, scanned.time_index
        self.damages = scanned.damages
        self.was_scanned = True
        self.note_all_checked()

    def reset_indexes(self) -> None:
        """Empty indexes, to be filled by `note_batch` while the log is scanned."""
        self._index, self._time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._max_timestamp, self._offset_of_max_timestamp = -1, self.base_offset
        self.first_timestamp = -1
        self.bytes_since_index_entry = 0
        self.index_is_saved = False
        self.tail_first_offset = self.base_offset
        self.tail_last_offsets, self.tail_positions = array("q"), array("q")

    def reset_aborted_txns(self) -> None:
        """An empty `.txnindex`, to be filled while the producer state is rebuilt."""
        if self.aborted_txns or self._files.exists(self.path + TXN_INDEX_SUFFIX):
            self._files.write_file(self.path + TXN_INDEX_SUFFIX, b"", sync=False)
        self.aborted_txns, self._saved_txns = [], 0

    def load_aborted_txns(self) -> None:
        """Read the `.txnindex`; InvalidIndexError if it is damaged."""
        self.has_aborted_txns(read_aborted_txns(self._files.read_file(self.path + TXN_INDEX_SUFFIX)))

    def has_aborted_txns(self, saved: Iterable[AbortedTxn]) -> None:
        """Take note of what is in the `.txnindex`."""
        self.aborted_txns = list(saved)
        self._saved_txns = len(self.aborted_txns)

    def save_indexes(self, *, final: bool) -> None:
        """Bring the index files up to date; `final` adds the time entry that Kafka writes at roll.
        Worker-safe.
        """
        index, times = self._index, self._time_index
        if self.index_is_saved or index is None or times is None:
            return
        if final:
            times.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        self._files.write_file(self.path + INDEX_SUFFIX, index.to_bytes(), sync=False)
        self._files.write_file(self.path + TIME_INDEX_SUFFIX, times.to_bytes(), sync=False)
        self.index_is_saved = True

    def sync(self, *, with_indexes: bool) -> None:
        """Make the log durable, and the index files if asked. Worker-safe."""
        self.file.sync()
        if self.aborted_txns:
            self._save_aborted_txns()
            sync_file(self._files, self.path + TXN_INDEX_SUFFIX)
        if with_indexes:
            sync_file(self._files, self.path + INDEX_SUFFIX)
            sync_file(self._files, self.path + TIME_INDEX_SUFFIX)

    def index_is_full(self, max_index_bytes: int) -> bool:
        """Kafka rolls when an index file has no room, one time entry being kept for the roll itself."""
        # Asked for each batch: a property costs as much as the rest.
        index, time_index = self._index, self._time_index
        if index is None or time_index is None:
            index, time_index = self.index, self.time_index
        return (
            len(index.positions) >= max_index_bytes // OFFSET_ENTRY_BYTES
            or len(time_index.timestamps) >= max_index_bytes // TIME_ENTRY_BYTES - 1
        )

    # --- finding batches --------------------------------------------------------------------------

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Headers of the batches from `position` (a batch start) on. Worker-safe; may wait for the disk."""
        read, size = self.file.pread, self.size
        for damage in self.damages:
            if damage.end_position > position:  # of which an index may know the inside
                yield from walk(read, position, damage.position)
                position = damage.end_position
        yield from walk(read, position, size)

    def tail_batch(self, offset: int) -> tuple[int, int]:
        """(start, size) of the batch that holds `offset`; start -1 if it is not among the newest. Event
        loop only.
        """
        if offset < self.tail_first_offset:
            return -1, 0
        positions = self.tail_positions
        found = bisect_left(self.tail_last_offsets, offset)
        count = len(positions)
        if found >= count:
            return -1, 0
        start = positions[found]
        return start, (positions[found + 1] if found + 1 < count else self.size) - start

    def tail_start_at_or_before(self, position: int) -> int:
        """The greatest exactly known batch start <= `position`, or -1. Event loop only."""
        found = bisect_right(self.tail_positions, position)
        return self.tail_positions[found - 1] if found else -1

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """(position, header) of the first batch whose last offset is >= `offset`. Worker-safe; may wait."""
        for position, header in self.headers(self.index.position_before(offset)):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header
        return None

    def locate_cached(self, offset: int) -> tuple[int, BatchHeader] | None:
        """As `locate`, only from memory and the page cache: None when that is not enough. Never waits."""
        index = self._index
        if index is None or self.damages:
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

    # --- truncation and removal -------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove every batch that holds `offset` or a later one; returns how many bytes went."""
        found = self.locate(offset)
        if found is None:
            return 0
        position, _ = found
        removed = self.size - position
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.size = position
        self.file.truncate(position)
        self.index_is_saved = False
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last
        start = self.index.positions[-1] if len(self.index) else 0
        for _, header in self.headers(start):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._offset_of_max_timestamp = header.max_timestamp, header.last_offset
        self.bytes_since_index_entry = position - start
        if position == 0:
            self.first_timestamp = -1
        self.tail_first_offset = offset
        self.tail_last_offsets, self.tail_positions = array("q"), array("q")
        kept = [txn for txn in self.aborted_txns if txn.last_offset < offset]
        if len(kept) != len(self.aborted_txns):
            self.aborted_txns = kept
            self._saved_txns = min(self._saved_txns, len(kept))
            with suppress(FileNotFoundError):  # it could not be written
                self._files.open(self.path + TXN_INDEX_SUFFIX).truncate(self._saved_txns * ABORTED_TXN_BYTES)
        if self.damages:
            self.damages = tuple(d for d in self.damages if d.end_position <= position)
        self.unchecked_end = min(self.unchecked_end, position)
        return removed

    def set_aside(self, suffix: str) -> None:
        """Rename all files so that they no longer count, e.g. to `.deleted`. Worker-safe."""
        for kind in SEGMENT_SUFFIXES:
            if self._files.exists(self.path + kind):
                self._files.rename(self.path + kind, self.path + kind + suffix)

    def unlink(self, suffix: str = "") -> None:
        """Remove all files for good. Worker-safe."""
        for kind in SEGMENT_SUFFIXES:
            self._files.remove(self.path + kind + suffix)

    def pin(self) -> None:
        """Read all that is ever needed by name, and keep it. Worker-safe."""
        self.is_pinned = True
        self._file, self._index, self._time_index = self.file, self.index, self.time_index
        assert self.max_timestamp >= -1

    def release(self) -> None:
        """Give back the descriptor and the indexes of a closed segment; both return on demand."""
        if self.is_pinned:
            return
        if self.index_is_saved and self.size:
            self._index = self._time_index = None
        self.tail_last_offsets, self.tail_positions = array("q"), array("q")
        self.release_file()

    def release_file(self) -> None:
        """Give back the descriptor; the file is opened again when needed."""
        if not self.has_torn_tail and not self.is_pinned:
            self._file = None

    # --- what is believed ---------------------------------------------------------------------------

    def is_checked(self, start: int, end: int) -> bool:
        """Whether this process wrote or checked all of the bytes [start, end)."""
        end = min(end, self.unchecked_end)
        return start >= end or any(first <= start and end <= last for first, last in self.checked_spans)

    def note_checked(self, start: int, end: int) -> None:
        """The bytes [start, end) are whole batches, and sound. Worker-safe."""
        with _checks_lock:
            apart = [span for span in self.checked_spans if span[1] < start or span[0] > end]
            touching = [span for span in self.checked_spans if span[1] >= start and span[0] <= end]
            start = min([start, *[first for first, _ in touching]])
            end = max([end, *[last for _, last in touching]])
            self.checked_spans = tuple(sorted([*apart, (start, end)]))
            if start == 0 and end >= self.unchecked_end:
                self.note_all_checked()

    def note_all_checked(self) -> None:
        """Everything is sound, or in `damages`. Worker-safe."""
        self.unchecked_end = 0
        self.checked_spans = ()

    # --- damage -----------------------------------------------------------------------------------

    def save_damages(self) -> None:
        """Remember what must not be served over a restart: `position end first_offset next_offset` lines."""
        path = self.path + DAMAGED_SUFFIX
        if self.damages:
            lines = "".join(
                f"{d.position} {d.end_position} {d.first_offset} {d.next_offset}\n" for d in self.damages
            )
            self._files.replace_file(path, lines.encode(), sync=True)
        else:
            self._files.remove(path)

    def load_damages(self) -> None:
        """Read what `save_damages` wrote."""
        lines = self._files.read_file(self.path + DAMAGED_SUFFIX).decode("ascii", "replace").splitlines()
        self.damages = tuple(Damage(*map(int, line.split())) for line in lines if line)


def segment_ends(segments: Sequence[Segment], end_offset: int) -> list[int]:
    """Where each segment ends: at the base offset of the next, the last one at `end_offset`."""
    return [*[segment.base_offset for segment in segments[1:]], end_offset]
