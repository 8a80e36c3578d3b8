"""Cleaning one log: read the dirty part for its keys, then rewrite all segments below it, group by group.

Only files are handled here: filtering.py decides which records are kept. It runs in a worker thread or in a
process of its own (process.py); the job has all it needs to know about the log. Finished groups are handed to
`on_group`, which puts them in place. Blocking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pykafka_broker.log.cleaner.filtering import Rules, remains
from pykafka_broker.log.cleaner.key_map import KeyMap
from pykafka_broker.log.cleaner.transactions import CleanedTransactions
from pykafka_broker.log.disk.files import File, FileSystem, join, write_fully
from pykafka_broker.log.disk.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)
from pykafka_broker.log.partition.cleaning_job import CleanedSegment, DamagedSegment, Job, SegmentToClean
from pykafka_broker.log.partition.dirty import SegmentSize, groups
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.log.segment.index import OffsetIndex, TimeIndex
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    MAGIC,
    SMALLEST_BATCH_LENGTH,
    BatchHeader,
    check_batch,
    record_bytes,
    walk_records,
)

_WRITE_BYTES = 1 << 20


#: Called with the bytes just read or written; it may wait (log.cleaner.io.max.bytes.per.second) or raise
#: CleaningAborted.
Meter = Callable[[int], None]


def clean(files: FileSystem, job: Job, meter: Meter, on_group: Callable[[CleanedSegment], None]) -> int:
    """Carry out a round; returns the offset up to which the log is clean then.

    Raises:
        CleaningAborted: `meter` or `on_group` raised it.
        DamagedSegment: before anything of its group was replaced.
        OSError: the disk refused.
    """
    keys = _map_of(files, job, meter)
    end_offset = keys.latest_offset + 1
    transactions = CleanedTransactions(job.aborted)
    rules = Rules(job.now_ms, job.delete_retention_ms, job.segments[-1].end_offset, job.last_records)
    by_base = {segment.base_offset: segment for segment in job.segments}
    due = [_size_of(files, job, segment) for segment in job.segments if segment.base_offset < end_offset]
    for group in groups(due, job.segment_bytes, job.segment_index_bytes):
        transactions.kept = []
        writer = _Writer(files, job, group[0].base_offset)
        for size in group:
            segment = by_base[size.base_offset]
            for position, header, batch in _batches(files, job, segment, meter):
                try:
                    left = remains(batch, header, keys, transactions, rules)
                except KafkaError as error:
                    raise DamagedSegment(segment.base_offset, position, error.message) from error
                if left is not None:
                    writer.append(left.batch, header.last_offset, left.max_timestamp)
                    meter(len(left.batch))
        writer.finish(transactions.kept, age_of=group[-1].base_offset)
        on_group(
            CleanedSegment(
                group[0].base_offset,
                [size.base_offset for size in group],
                writer.size,
                tuple(transactions.kept),
            )
        )
    return end_offset


def _map_of(files: FileSystem, job: Job, meter: Meter) -> KeyMap:
    """The newest offset of each key from the first dirty offset on, for as many keys as fit into memory."""
    most_keys = job.segments[-1].end_offset - job.first_dirty_offset
    keys = KeyMap(job.key_map_bytes, most_keys, load=job.key_map_load)
    transactions = CleanedTransactions(
        [txn for txn in job.aborted if txn.last_offset >= job.first_dirty_offset]
    )
    for segment in job.segments:
        if segment.end_offset <= job.first_dirty_offset:
            continue
        for position, header, batch in _batches(files, job, segment, meter):
            if header.last_offset < job.first_dirty_offset:
                continue
            try:
                check_batch(batch)
                if header.is_control:
                    transactions.on_control(header, batch)
                elif not transactions.on_data(header) and not _note_keys(
                    keys, header, batch, job.first_dirty_offset
                ):
                    return keys
            except KafkaError as error:
                raise DamagedSegment(segment.base_offset, position, error.message) from error
            keys.latest_offset = max(keys.latest_offset, header.last_offset)
        keys.latest_offset = max(keys.latest_offset, segment.end_offset - 1)
    return keys


def _note_keys(keys: KeyMap, header: BatchHeader, batch: memoryview, first_dirty_offset: int) -> bool:
    """Put the keys of a batch into the map; False when it is full."""
    if not header.records_count:
        return True
    base_offset, put = header.base_offset, keys.put
    data = record_bytes(batch, header)
    for span in walk_records(data, header.records_count):
        offset = base_offset + span[0]
        if span[3] >= 0 and offset >= first_dirty_offset and not put(data[span[2] : span[3]], offset):
            return False
    return True


def _size_of(files: FileSystem, job: Job, segment: SegmentToClean) -> SegmentSize:
    def size(suffix: str) -> int:
        try:
            path = join(job.directory, offset_file(segment.base_offset, suffix))
            return files.open(path, writable=False).size()
        except FileNotFoundError:
            return 0

    return SegmentSize(
        segment.base_offset,
        segment.end_offset,
        segment.size_bytes,
        size(INDEX_SUFFIX),
        size(TIME_INDEX_SUFFIX),
    )


def _batches(
    files: FileSystem, job: Job, segment: SegmentToClean, meter: Meter
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """The batches of a segment with their positions, read in large pieces."""
    file = files.open(join(job.directory, offset_file(segment.base_offset, LOG_SUFFIX)), writable=False)
    position, wanted = 0, job.io_buffer_bytes
    while position < segment.size_bytes:
        asked = min(max(wanted, HEADER_BYTES), segment.size_bytes - position)
        chunk = memoryview(file.pread(asked, position))
        meter(len(chunk))
        at, wanted = 0, job.io_buffer_bytes
        while at + HEADER_BYTES <= len(chunk):
            header = BatchHeader._make(HEADER.unpack_from(chunk, at))
            size = header.size_in_bytes
            end = position + at + size
            if (
                header.batch_length < SMALLEST_BATCH_LENGTH
                or header.magic != MAGIC
                or end > segment.size_bytes
            ):
                raise DamagedSegment(segment.base_offset, position + at, "no record batch")
            if at + size > len(chunk):
                wanted = max(wanted, size)
                break
            yield position + at, header, chunk[at : at + size]
            at += size
        if len(chunk) < asked or (at == 0 and position + asked == segment.size_bytes):
            raise DamagedSegment(segment.base_offset, position, "half a record batch")
        position += at


class _Writer:
    """The segment that replaces a group."""

    def __init__(self, files: FileSystem, job: Job, base_offset: int) -> None:
        self._files = files
        self._directory = job.directory
        self._path = join(job.directory, offset_file(base_offset, ""))
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
            files.remove(self._path + suffix + CLEANED_SUFFIX)
        self._file: File = files.open(self._path + LOG_SUFFIX + CLEANED_SUFFIX, create=True)
        self._index = OffsetIndex(base_offset)
        self._times = TimeIndex(base_offset)
        self._newest = (-1, base_offset)
        self._interval_bytes = job.index_interval_bytes
        self._since_entry = 0
        self._buffer = bytearray()
        self._written = 0

    @property
    def size(self) -> int:
        return self._written + len(self._buffer)

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int) -> None:
        position = self.size
        if max_timestamp > self._newest[0]:
            self._newest = max_timestamp, last_offset
        if self._since_entry > self._interval_bytes:
            self._index.append(last_offset, position)
            self._times.maybe_append(*self._newest)
            self._since_entry = 0
        self._since_entry += len(batch)
        self._buffer += batch
        if len(self._buffer) >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        write_fully(self._file, self._buffer, self._written)
        self._written += len(self._buffer)
        self._buffer = bytearray()

    def finish(self, aborted: Sequence[AbortedTxn], *, age_of: int) -> None:
        """Write and sync everything. There is a `.txnindex` even without entries: see swap.py.

        The file gets the modification time of segment `age_of`, which retention uses if records have no
        timestamps.
        """
        self._write()
        old = join(self._directory, offset_file(age_of, LOG_SUFFIX))
        self._files.set_modified_ms(self._path + LOG_SUFFIX + CLEANED_SUFFIX, self._files.modified_ms(old))
        self._file.sync()
        self._times.maybe_append(*self._newest)
        for suffix, data in (
            (INDEX_SUFFIX, self._index.to_bytes()),
            (TIME_INDEX_SUFFIX, self._times.to_bytes()),
            (TXN_INDEX_SUFFIX, b"".join([txn.to_bytes() for txn in aborted])),
        ):
            self._files.write_file(self._path + suffix + CLEANED_SUFFIX, data, sync=True)
