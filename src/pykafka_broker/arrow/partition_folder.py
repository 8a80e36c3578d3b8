"""A partition's folder as brokers write it, also meanwhile, and a cursor that goes through its segments.

The cursor reads a segment to its end even if retention or compaction replaces it meanwhile. Then it lists the
folder again: segments that compaction has merged have the name of the first of them.
"""

from __future__ import annotations

import os.path
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress

from pykafka_broker.arrow.core.decoding import invalid_batch
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.segment_file import Chunk, SegmentFile
from pykafka_broker.log.disk.checkpoints import (
    MalformedFile,
    decode_offsets,
    decode_partition_metadata,
)
from pykafka_broker.log.disk.files import FileSystem, absolute, directory_name, join
from pykafka_broker.log.disk.names import (
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    FolderName,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.records.batch import HEADER_BYTES, BatchHeader
from pykafka_broker.protocol.records.errors import CorruptRecord

#: The bytes to read to see whether a batch is there.
_LOOK_BYTES = HEADER_BYTES


class PartitionFolder:
    """The folder at `path`, of the partition with this name."""

    __slots__ = ("_files", "name", "path")

    def __init__(self, files: FileSystem, path: str, name: FolderName) -> None:
        self._files = files
        self.path = path
        self.name = name

    def files_with(self, suffix: str) -> list[tuple[int, str]]:
        """The offset in the name of each file of this kind, and its path; ascending."""
        names = [(parse_offset_file(entry.name), entry.name) for entry in self._files.entries(self.path)]
        return sorted(
            (parsed[0], join(self.path, name)) for parsed, name in names if parsed and parsed[1] == suffix
        )

    def base_offsets(self) -> list[int]:
        """The base offsets of the segments, in order."""
        return [offset for offset, _ in self.files_with(LOG_SUFFIX)]

    def read(self, path: str) -> bytes:
        """The content of a small file of the folder."""
        return self._files.read_file(path)

    def segment(self, base_offset: int) -> SegmentFile:
        """A segment of the folder.

        Raises:
            FileNotFoundError: it is gone.
        """
        return SegmentFile(self._files, join(self.path, offset_file(base_offset, "")), base_offset)

    def topic_id(self) -> str | None:
        """The id of its topic as Kafka's tools print it; None if the folder does not say."""
        with suppress(FileNotFoundError, MalformedFile):
            return uuid_text(
                decode_partition_metadata(self._files.read_file(join(self.path, PARTITION_METADATA)))
            )
        return None

    def start_offset(self) -> int:
        """The log start offset: that of the first segment, or the one after the records that were deleted."""
        deleted_up_to = 0
        with suppress(FileNotFoundError, MalformedFile):
            offsets = decode_offsets(
                self._files.read_file(join(directory_name(self.path), LOG_START_CHECKPOINT))
            )
            deleted_up_to = offsets.get((self.name.topic, self.name.partition), 0)
        return max(deleted_up_to, next(iter(self.base_offsets()), 0))

    def end_offset(self) -> int:
        """The offset behind the last whole batch.

        Raises:
            KafkaError: CORRUPT_MESSAGE, the bytes after it are no batch that is being written.
        """
        bases = self.base_offsets()
        if not bases:
            return 0
        segment = self.segment(bases[-1])
        end, position = segment.base_offset, segment.last_indexed()
        for at, header in segment.headers(position):
            end, position = header.next_offset, at + header.size_in_bytes
        self.chunk(segment, position, _LOOK_BYTES, end)
        return end

    def find(self, offset: int) -> tuple[SegmentFile, int] | None:
        """The segment with the first batch at or behind an offset, and where that begins; None at the end
        of the log.

        Raises:
            KafkaError: CORRUPT_MESSAGE, the log is damaged there; OFFSET_OUT_OF_RANGE, the log begins after
                the offset.
        """
        bases = self.base_offsets()
        if bases and bases[0] > offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name.topic}-{self.name.partition} has no offset {offset}: it begins at {bases[0]}, "
                "records before that were deleted.",
            )
        for number in range(max(bisect_right(bases, offset) - 1, 0), len(bases)):
            try:
                segment = self.segment(bases[number])
            except FileNotFoundError:
                return self.find(offset)
            position = segment.position_of(offset)
            if self.chunk(segment, position, _LOOK_BYTES, offset).batches:
                return segment, position
            if number + 1 < len(bases):
                self.insist_on_end(segment, position, offset)
        return None

    def bytes_of(self, wanted: OffsetRange) -> int:
        """About how many bytes of its segments hold these offsets."""
        total = left_out = 0
        for segment in self._segments(wanted):
            size = segment.size()
            total += size
            if wanted.start > segment.base_offset:
                total -= segment.indexed_position(wanted.start)
            left_out = size - (segment.indexed_position(wanted.end) or size)
        return max(total - left_out, 0)

    def divided(self, wanted: OffsetRange, size: int) -> list[OffsetRange]:
        """These offsets in parts of about `size` bytes, each of which begins with a batch: small segments are
        joined, large ones cut where their indexes have a batch.
        """
        cuts: list[int] = []
        filled = 0
        for segment in self._segments(wanted):
            base = segment.base_offset
            begin = segment.indexed_position(wanted.start) if wanted.start > base else 0
            if filled >= size and base > wanted.start:
                cuts.append(base)
                filled = 0
            last = begin if wanted.start >= base else -1
            for position, offset in segment.batches_every(size, begin - filled):
                if offset >= wanted.end:
                    break
                if position > last and offset > wanted.start:
                    cuts.append(offset)
                    last, filled = position, 0
            filled += segment.size() - max(last, begin)
        return [OffsetRange(*both) for both in zip([wanted.start, *cuts], [*cuts, wanted.end], strict=True)]

    def _segments(self, wanted: OffsetRange) -> Iterator[SegmentFile]:
        """The segments that may hold these offsets; those that are removed meanwhile are left out."""
        bases = self.base_offsets()
        for base in bases[max(bisect_right(bases, wanted.start) - 1, 0) :]:
            if base >= wanted.end:
                return
            with suppress(FileNotFoundError):
                yield self.segment(base)

    def chunk(self, segment: SegmentFile, position: int, size: int, offset: int) -> Chunk:
        """The next batches of a segment, of which the first one has this offset or a later one.

        Raises:
            CorruptRecord: the bytes there are no batch.
        """
        try:
            return segment.chunk(position, size)
        except CorruptRecord as error:
            raise self.corrupt(segment, offset, error.message) from None

    def insist_on_end(self, segment: SegmentFile, position: int, offset: int) -> None:
        """Check that a segment ends here, because another one follows it.

        Raises:
            CorruptRecord: there are more bytes, which are no whole batch.
        """
        left = segment.size() - position
        if left > 0:
            raise self.corrupt(
                segment, offset, f"No whole batch in the last {left} bytes at position {position}"
            )

    def corrupt(self, segment: SegmentFile, offset: int, cause: str) -> CorruptRecord:
        """The error of a segment that is damaged at an offset."""
        topic, partition, _ = self.name
        cause = f"{cause} of {offset_file(segment.base_offset, LOG_SUFFIX)}"
        return CorruptRecord(invalid_batch(topic, partition, offset, cause))


def folders_in(files: FileSystem, path: str) -> list[PartitionFolder]:
    """The folders of partitions in a log directory, without those that are about to be removed or moved.

    Raises:
        ValueError: there is no such directory.
    """
    try:
        names = [entry.name for entry in files.entries(path) if entry.is_directory]
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"There is no folder {path}") from None
    found = [(parse_partition_folder(name), name) for name in sorted(names)]
    return [
        PartitionFolder(files, join(path, name), parsed)
        for parsed, name in found
        if parsed is not None and not parsed.state
    ]


def folder_at(files: FileSystem, path: str) -> PartitionFolder:
    """The folder of a partition at `path`.

    Raises:
        ValueError: it is not named like one.
    """
    name = parse_partition_folder(os.path.basename(path))
    if name is None:
        raise ValueError(f"{path} is no folder of a partition, whose name is TOPIC-PARTITION; name the topic")
    return PartitionFolder(files, path, name)


def open_folders(files: FileSystem, path: str, topic: str | None) -> tuple[str, dict[int, PartitionFolder]]:
    """The topic, and its folders by partition: the one at `path`, or those of `topic` in the log directory
    there.

    Raises:
        ValueError: `path` is no such folder.
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, the directory has no folder of the topic.
    """
    path = absolute(path)
    inside = folders_in(files, path)
    if topic is None:
        folder = folder_at(files, path)
        return folder.name.topic, {folder.name.partition: folder}
    folders = {folder.name.partition: folder for folder in inside if folder.name.topic == topic}
    if not folders:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no folder of topic '{topic}' in {path}."
        )
    return topic, dict(sorted(folders.items()))


class Cursor:
    """Goes through the batches of a folder from an offset on, up to the present end of the log; each pass
    goes on where the last one ended.

    The reader sets `offset` to the next wanted one.
    """

    __slots__ = ("_at", "_folder", "offset")

    def __init__(self, folder: PartitionFolder, offset: int) -> None:
        self._folder = folder
        self.offset = offset
        self._at: tuple[SegmentFile, int] | None = None

    def chunks(self, size: int) -> Iterator[list[tuple[BatchHeader, memoryview]]]:
        """The batches from `offset` on, about `size` bytes at a time.

        Raises:
            KafkaError: as `PartitionFolder.find`.
        """
        while (at := self._next()) is not None:
            segment, position = at
            chunk = self._folder.chunk(segment, position, max(size, _LOOK_BYTES), self.offset)
            first, _ = chunk.batches[0]
            if first.next_offset <= self.offset:
                raise self._folder.corrupt(
                    segment,
                    self.offset,
                    f"The offset {first.base_offset} is behind it at position {position}",
                )
            self._at = segment, chunk.end_position
            yield chunk.batches

    def headers(self) -> Iterator[tuple[BatchHeader, bytes]]:
        """Headers of the batches from `offset` on; those of control batches with the batch.

        Raises:
            KafkaError: as `PartitionFolder.find`.
        """
        while (at := self._next()) is not None:
            segment, position = at
            for begin, header in segment.headers(position):
                self._at = segment, begin + header.size_in_bytes
                yield header, segment.read(header.size_in_bytes, begin) if header.is_control else b""

    def rewind(self) -> None:
        """Go on at `offset`, even if chunks went beyond it."""
        self._at = None

    def _next(self) -> tuple[SegmentFile, int] | None:
        """The segment and position of the next batch; None at the present end of the log."""
        if self._at is not None:
            # Asked first: the segment is not written to any more if another one follows it.
            is_last = self._folder.base_offsets()[-1:] == [self._at[0].base_offset]
            segment, position = self._at
            if self._folder.chunk(segment, position, _LOOK_BYTES, self.offset).batches:
                return self._at
            if is_last:
                return None
            self._folder.insist_on_end(segment, position, self.offset)
        found = self._folder.find(self.offset)
        if found is not None:
            self._at = found
        return found
