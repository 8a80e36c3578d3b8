"""One `.log` file of a partition's folder, read from any offset or time on, also while it is written. Indexes
are used if they exist and agree with the log; without them reading is only slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pykafka_broker.arrow.core.stored_batches import NO_END
from pykafka_broker.log.disk.files import File, FileSystem
from pykafka_broker.log.disk.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from pykafka_broker.log.segment.header_walk import walk_headers
from pykafka_broker.log.segment.index import InvalidIndexError, OffsetIndex, TimeIndex
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.protocol.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    iter_batches,
    read_header,
    read_records,
)
from pykafka_broker.protocol.records.errors import CorruptRecord
from pykafka_broker.system.named_tuple import NamedTuple

#: The bytes of a header where no batch is written yet.
_ZEROS = bytes(HEADER_BYTES)


class Chunk(NamedTuple):
    """Some batches of a file, with their headers, and the position of the next one."""

    batches: list[tuple[BatchHeader, memoryview]]
    end_position: int


class SegmentFile:
    """The file with the offsets from `base_offset` on; closed when nothing refers to it."""

    __slots__ = ("_file", "_files", "base_offset")

    def __init__(self, files: FileSystem, path: str, base_offset: int) -> None:
        """Open it; `path` is that of its files without their suffix.

        Raises:
            FileNotFoundError: it is gone.
        """
        self._files = SegmentFiles(files, path)
        self._file: File = self._files.open(LOG_SUFFIX, writable=False)
        self.base_offset = base_offset

    def size(self) -> int:
        """Its bytes now."""
        return self._file.size()

    def position_of(self, offset: int) -> int:
        """The position of the batch with this offset, or of the first one after it; the end of the batches if
        there is none.
        """
        end = self.indexed_position(offset)
        for position, header in self.headers(end):
            if header.next_offset > offset:
                return position
            end = position + header.size_in_bytes
        return end

    def last_indexed(self) -> int:
        """The beginning of the last batch that the index knows."""
        return self.indexed_position(NO_END)

    def indexed_position(self, offset: int) -> int:
        """The beginning of a batch at or before the one with this offset, as the index knows it; 0 if it
        knows none.
        """
        index = self._index()
        position = 0 if index is None else index.position_before(offset)
        is_right = index is not None and position and self._indexed(index, position) is not None
        return position if is_right else 0

    def batches_every(self, size: int, position: int) -> Iterator[tuple[int, int]]:
        """Position and base offset of a batch about every `size` bytes after `position`. Batches that the
        index does not have yet are found by their headers.
        """
        if position + size >= self.size():
            return
        index, known_up_to = self._index(), self.last_indexed()
        while index is not None and position + size < known_up_to:
            position += size
            entry = index.entry_at_or_before(position)
            if entry is None:
                yield 0, self.base_offset
            elif (header := self._indexed(index, entry[1])) is not None:
                yield entry[1], header.base_offset
        for at, header in self.headers(known_up_to):
            if at >= position + size:
                position = at
                yield at, header.base_offset

    def _index(self) -> OffsetIndex | None:
        """Its index, if it has one that may be right."""
        try:
            return OffsetIndex.from_bytes(self._files.read(INDEX_SUFFIX), self.base_offset, self.size())
        except (FileNotFoundError, InvalidIndexError):
            return None

    def _indexed(self, index: OffsetIndex, position: int) -> BatchHeader | None:
        """The header of the batch to which an entry points; None if the log has another one there."""
        entry = index.entry_at_or_before(position)
        header = next((each for _, each in walk_headers(self._file.pread, position, self.size())), None)
        if header is None or entry != (header.last_offset, position):
            return None
        return header

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch from a batch's beginning on, up to bytes that are no
        batch.
        """
        return walk_headers(self._file.pread, position, self.size())

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes."""
        return self._file.pread(size, position)

    def chunk(self, position: int, size: int) -> Chunk:
        """The whole batches among the next `size` bytes, or the next one if it is larger; none at the end,
        also where the last batch is not complete yet.

        Raises:
            CorruptRecord: the bytes there are no batch.
        """
        data = memoryview(self._file.pread(size, position))
        if len(data) >= HEADER_BYTES:
            first = read_header(data).batch_length + LOG_OVERHEAD_BYTES
            if len(data) < first <= self.size() - position:
                data = memoryview(self._file.pread(first, position))
        batches = []
        end = 0
        try:
            for at, header in iter_batches(data):
                end = at + header.batch_length + LOG_OVERHEAD_BYTES
                batches.append((header, data[at:end]))
        except CorruptRecord:
            # With `preallocate`, Kafka makes files of their full size, filled with zeros.
            if data[end : end + HEADER_BYTES] != _ZEROS:
                raise
        return Chunk(batches, position + end)

    def first_at_or_after(self, timestamp: int, start: int) -> int | None:
        """The offset, from `start` on, of the first record with at least this timestamp; None if there is
        none.

        Raises:
            KafkaError: a batch that may hold it is damaged.
        """
        first = max(start, self.base_offset)
        with suppress(FileNotFoundError, InvalidIndexError):
            index = TimeIndex.from_bytes(self._files.read(TIME_INDEX_SUFFIX), self.base_offset)
            entry = index.entry_before(timestamp)
            if entry is not None:
                first = max(first, entry[1] + 1)
        for position, header in self.headers(self.position_of(first)):
            if header.max_timestamp >= timestamp:
                for record in read_records(self._file.pread(header.size_in_bytes, position)):
                    if record.timestamp >= timestamp and record.offset >= first:
                        return record.offset
        return None
