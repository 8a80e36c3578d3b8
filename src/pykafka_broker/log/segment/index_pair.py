"""The offset index and the time index of one segment, and the newest batches, whose places are known exactly.

The indexes of the segment being written live in memory and reach their files when it is rolled, flushed or
closed: they can always be rebuilt from the log, so a crash costs a scan of the unflushed part and never data.
Those of a closed segment are read when first needed, each by itself, and can be dropped again (`release`).

The files carry no checksum. An index that cannot be one, or does not end where its log says, is rebuilt from
the batch headers. Methods that may read the log get it as an argument: the pair must not hold it, because a
segment's descriptor is closed when nothing refers to the segment.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from pykafka_broker.log.disk.names import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from pykafka_broker.log.segment.index import (
    MAX_RELATIVE_OFFSET,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    InvalidIndexError,
    OffsetIndex,
    TimeIndex,
    last_offset_entry,
    last_time_entry,
)
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.protocol.records.batch import BatchHeader

#: The newest batches of the active segment are known exactly; older ones through the sparse index.
_TAIL_BATCHES = 256


class IndexedLog(Protocol):
    """The log that the indexes point into."""

    @property
    def size(self) -> int:
        """Bytes of batches."""

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from `position` on."""

    def carries(self, timestamp: int, offset: int) -> bool:
        """Whether the batch that holds `offset` has this as its greatest timestamp."""


class IndexPair:
    """The indexes of one segment's batches, by offset and by time."""

    __slots__ = (
        "_files",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "base_offset",
        "bytes_since_entry",
        "first_timestamp",
        "interval_bytes",
        "is_saved",
        "offset_index",
        "tail_first_offset",
        "tail_last_offsets",
        "tail_positions",
        "time_index",
    )

    def __init__(self, files: SegmentFiles, base_offset: int, interval_bytes: int) -> None:
        self._files = files
        self.base_offset = base_offset
        #: The bytes of log per index entry (`index.interval.bytes`).
        self.interval_bytes = interval_bytes
        #: None while not in memory.
        self.offset_index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        #: The files hold the same entries as memory.
        self.is_saved = True
        self.bytes_since_entry = 0
        #: Max timestamp of the first batch, which decides when to roll by time; -1 while empty or unknown.
        self.first_timestamp = -1
        #: None while unknown.
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        #: Positions and last offsets of the newest batches, which begin at `tail_first_offset`.
        self.tail_first_offset = base_offset
        self.tail_last_offsets = array("q")
        self.tail_positions = array("q")

    # --- filled -----------------------------------------------------------------------------------

    def create(self) -> None:
        """Empty indexes with empty files, for a new segment."""
        self.offset_index, self.time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._max_timestamp = -1
        self._files.write(INDEX_SUFFIX, b"")
        self._files.write(TIME_INDEX_SUFFIX, b"")

    def reset(self) -> None:
        """Empty indexes in memory, to be filled by `note_batch` while the log is scanned."""
        self.offset_index, self.time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._max_timestamp, self._offset_of_max_timestamp = -1, self.base_offset
        self.first_timestamp = -1
        self.bytes_since_entry = 0
        self.is_saved = False
        self._forget_tail(self.base_offset)

    def note_batch(
        self,
        log: IndexedLog,
        position: int,
        size: int,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
    ) -> None:
        """Account for a batch that is in the file."""
        if position == 0:
            self.first_timestamp = max_timestamp
        newest = self._max_timestamp
        if max_timestamp > (self.max_timestamp(log) if newest is None else newest):
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = offset_of_max_timestamp
        if self.bytes_since_entry > self.interval_bytes:
            self.by_offset(log).append(last_offset, position)
            self.by_time(log).maybe_append(self.max_timestamp(log), self._offset_of_max_timestamp)
            self.bytes_since_entry = 0
        self.bytes_since_entry += size
        self.is_saved = False
        tail = self.tail_positions
        if len(tail) >= _TAIL_BATCHES:
            drop = _TAIL_BATCHES // 2
            self.tail_first_offset = self.tail_last_offsets[drop - 1] + 1
            del tail[:drop]
            del self.tail_last_offsets[:drop]
        tail.append(position)
        self.tail_last_offsets.append(last_offset)

    def truncate_to(self, log: IndexedLog, offset: int) -> None:
        """Remove the entries that point at or past `offset`, where the log has just been made to end.

        Both indexes must be in memory: their files still describe the longer log.
        """
        index, time_index = self.by_offset(log), self.by_time(log)
        index.truncate_to(offset)
        time_index.truncate_to(offset)
        self.is_saved = False
        self._max_timestamp, self._offset_of_max_timestamp = time_index.last
        start = index.positions[-1] if len(index) else 0
        for _, header in log.headers(start):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._offset_of_max_timestamp = header.max_timestamp, header.last_offset
        self.bytes_since_entry = log.size - start
        if log.size == 0:
            self.first_timestamp = -1
        self._forget_tail(offset)

    def _forget_tail(self, first_offset: int) -> None:
        self.tail_first_offset = first_offset
        self.tail_last_offsets, self.tail_positions = array("q"), array("q")

    # --- loaded and given back --------------------------------------------------------------------

    def by_offset(self, log: IndexedLog) -> OffsetIndex:
        """The offset index, read from its file or rebuilt when first needed. Worker-safe; may wait for the
        disk.
        """
        index = self.offset_index
        if index is None:
            try:
                data = self._files.read(INDEX_SUFFIX)
                index = OffsetIndex.from_bytes(data, self.base_offset, max(log.size, 1))
                if not len(index) and log.size > 2 * self.interval_bytes:
                    raise InvalidIndexError("offset index is empty")
            except (FileNotFoundError, InvalidIndexError):
                index = self._rebuild(log)[0]
            held = self.offset_index
            if held is not None:  # another thread was faster, and may have appended to it
                return held
            self.offset_index = index
        return index

    def by_time(self, log: IndexedLog) -> TimeIndex:
        """The time index, read from its file or rebuilt when first needed. Worker-safe; may wait for the
        disk.
        """
        index = self.time_index
        if index is None:
            try:
                index = TimeIndex.from_bytes(self._files.read(TIME_INDEX_SUFFIX), self.base_offset)
                if not len(index) and log.size:
                    raise InvalidIndexError("time index is empty")
                if log.size and not self.is_newest(log, *index.last):
                    raise InvalidIndexError("time index does not end with the newest timestamp")
            except (FileNotFoundError, InvalidIndexError):
                index = self._rebuild(log)[1]
            held = self.time_index
            if held is not None:
                return held
            self.time_index = index
        return index

    def _rebuild(self, log: IndexedLog) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes from the batch headers, up to the first that cannot be true; written to their
        files.
        """
        index, time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        indexed = 0
        newest = (-1, self.base_offset)
        next_offset = self.base_offset
        for position, header in log.headers(0):
            if not next_offset <= header.base_offset <= self.base_offset + MAX_RELATIVE_OFFSET:
                break
            next_offset = header.next_offset
            if header.max_timestamp > newest[0]:
                newest = (header.max_timestamp, header.last_offset)
            if position - indexed > self.interval_bytes:
                index.append(header.last_offset, position)
                time_index.maybe_append(*newest)
                indexed = position
        time_index.maybe_append(*newest)
        with suppress(OSError):  # an index that cannot be kept is rebuilt again
            self._files.write(INDEX_SUFFIX, index.to_bytes())
            self._files.write(TIME_INDEX_SUFFIX, time_index.to_bytes())
        return index, time_index

    def hold(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        """Keep these in memory."""
        self.offset_index, self.time_index = offset_index, time_index

    def release(self, *, keeps_indexes: bool) -> None:
        """Give memory back: the exactly known places always, the indexes if their files have them."""
        if self.is_saved and not keeps_indexes:
            self.offset_index = self.time_index = None
        self.tail_last_offsets, self.tail_positions = array("q"), array("q")

    @property
    def is_loaded(self) -> bool:
        """Whether both indexes are in memory."""
        return self.offset_index is not None and self.time_index is not None

    def save(self, log: IndexedLog, *, final: bool) -> None:
        """Bring the files up to date; `final` adds the time entry that Kafka writes at roll. Worker-safe."""
        index, time_index = self.offset_index, self.time_index
        if self.is_saved or index is None or time_index is None:
            return
        if final:
            time_index.maybe_append(self.max_timestamp(log), self._offset_of_max_timestamp)
        self._files.write(INDEX_SUFFIX, index.to_bytes())
        self._files.write(TIME_INDEX_SUFFIX, time_index.to_bytes())
        self.is_saved = True

    def sync(self) -> None:
        """Make the saved files durable. Worker-safe."""
        self._files.sync(INDEX_SUFFIX)
        self._files.sync(TIME_INDEX_SUFFIX)

    def is_full(self, log: IndexedLog, max_index_bytes: int) -> bool:
        """Whether an index is full, so that the segment must roll; one time entry is kept for the roll."""
        # Asked for each batch: a further call costs as much as the rest.
        index, time_index = self.offset_index, self.time_index
        if index is None or time_index is None:
            index, time_index = self.by_offset(log), self.by_time(log)
        return (
            len(index.positions) >= max_index_bytes // OFFSET_ENTRY_BYTES
            or len(time_index.timestamps) >= max_index_bytes // TIME_ENTRY_BYTES - 1
        )

    def room(self, log: IndexedLog, max_index_bytes: int) -> int:
        """The number of batches after which `is_full` has to be asked again, at least one."""
        index, time_index = self.by_offset(log), self.by_time(log)
        return max(
            1,
            min(
                max_index_bytes // OFFSET_ENTRY_BYTES - len(index.positions),
                max_index_bytes // TIME_ENTRY_BYTES - 1 - len(time_index.timestamps),
            ),
        )

    # --- the newest timestamp and the newest entry ------------------------------------------------

    def max_timestamp(self, log: IndexedLog) -> int:
        """The greatest timestamp of any record, -1 if there is none. May read the end of the time index."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self._last_time_entry(log)
        return self._max_timestamp

    def offset_of_max_timestamp(self, log: IndexedLog) -> int:
        """Last offset of the batch that carries `max_timestamp`."""
        assert self.max_timestamp(log) >= -1
        return self._offset_of_max_timestamp

    def _last_time_entry(self, log: IndexedLog) -> tuple[int, int]:
        if self.time_index is None:
            data = self._files.read_end(TIME_INDEX_SUFFIX, TIME_ENTRY_BYTES)
            last = last_time_entry(data, self.base_offset)
            if last is not None and self.is_newest(log, *last):
                return last
        return self.by_time(log).last

    def is_newest(self, log: IndexedLog, timestamp: int, offset: int) -> bool:
        """Whether the batch that holds `offset` has this timestamp, and no batch after the last index entry a
        greater one. Otherwise the time index has lost its end, or belongs to another log.
        """
        last = self.last_offset_entry(log)
        is_carried = False
        for _, header in log.headers(last[1] if last is not None else 0):
            if header.max_timestamp > timestamp:
                return False
            is_carried = is_carried or (header.max_timestamp == timestamp and header.last_offset >= offset)
        return is_carried or log.carries(timestamp, offset)

    def last_offset_entry(self, log: IndexedLog) -> tuple[int, int] | None:
        """(offset, position) of the newest entry of the offset index; reads no more than that entry if the
        file ends with it.
        """
        if self.offset_index is None:
            data = self._files.read_end(INDEX_SUFFIX, OFFSET_ENTRY_BYTES)
            last = last_offset_entry(data, self.base_offset)
            if last is not None and last[1] < log.size:
                return last
        index = self.by_offset(log)
        return (index.base_offset + index.relative_offsets[-1], index.positions[-1]) if len(index) else None

    # --- the newest batches -----------------------------------------------------------------------

    def tail_batch(self, offset: int, end_position: int) -> tuple[int, int]:
        """(start, size) of the batch that holds `offset`, in a log that ends at `end_position`; start -1 if
        it is not among the newest. Event loop only.
        """
        if offset < self.tail_first_offset:
            return -1, 0
        positions = self.tail_positions
        found = bisect_left(self.tail_last_offsets, offset)
        count = len(positions)
        if found >= count:
            return -1, 0
        start = positions[found]
        return start, (positions[found + 1] if found + 1 < count else end_position) - start

    def tail_start_at_or_before(self, position: int) -> int:
        """The greatest exactly known batch start <= `position`, or -1. Event loop only."""
        found = bisect_right(self.tail_positions, position)
        return self.tail_positions[found - 1] if found else -1

    def begin_tail(self, offset: int) -> None:
        """Batches appended from now on begin at `offset` and are known exactly, unless some already are."""
        if not self.tail_positions:
            self.tail_first_offset = offset
