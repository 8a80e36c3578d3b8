"""A partition's folder: an iterator over its batches, without a broker.

All records in the folder are read, also those that a replica has written and its cluster has not committed
yet. A reader of committed records first reads the headers of batches for transaction markers: these are in
the log itself, so a copy without indexes will do. This pass begins at the last producer snapshot before the
first wanted offset, if there is one, and ends once every transaction begun before the last wanted offset has
ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pykafka_broker.arrow.core.fetched import READ_COMMITTED
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.open_transactions import TransactionScan
from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange, StoredBatch, take
from pykafka_broker.arrow.partition_folder import Cursor, PartitionFolder
from pykafka_broker.arrow.ranges import EARLIEST, LATEST
from pykafka_broker.log.disk.names import SNAPSHOT_SUFFIX
from pykafka_broker.log.partition.producers import (
    NO_OFFSET,
    CorruptSnapshotError,
    read_snapshot,
    transaction_marker,
)
from pykafka_broker.protocol.records.aborted_transactions import AbortedTransactions


def look_up(folder: PartitionFolder, timestamp: int) -> int:
    """The first offset at or after a time; -1 if there is none. EARLIEST and LATEST stand for the ends of
    the log.

    Raises:
        KafkaError: the log is damaged.
    """
    if timestamp == EARLIEST:
        return folder.start_offset()
    if timestamp == LATEST:
        return folder.end_offset()
    start = folder.start_offset()
    for base_offset in folder.base_offsets():
        with suppress(FileNotFoundError):
            found = folder.segment(base_offset).first_at_or_after(timestamp, start)
            if found is not None:
                return found
    return -1


class FolderReader:
    """Reads wanted offsets of a folder; each call of `available` goes on where the last one ended."""

    def __init__(
        self, folder: PartitionFolder, wanted: OffsetRange, isolation_level: int, limits: Limits
    ) -> None:
        self._name = folder.name
        self._cursor = Cursor(folder, wanted.start)
        self._end = wanted.end
        self._limits = limits
        self._transactions = (
            KnownTransactions(folder, wanted.start) if isolation_level == READ_COMMITTED else None
        )

    @property
    def next_offset(self) -> int:
        """The next wanted offset, behind the batches that were handed out."""
        return self._cursor.offset

    @property
    def is_finished(self) -> bool:
        """Whether all wanted offsets were read."""
        return self._cursor.offset >= self._end

    def available(self) -> Iterator[list[StoredBatch]]:
        """The wanted batches that are there now and were not read yet, a chunk of a file at a time.

        Raises:
            KafkaError: CORRUPT_MESSAGE, the log is damaged; OFFSET_OUT_OF_RANGE, the next records were
                deleted.
        """
        cursor, end, aborted = self._cursor, self._end, None
        if self._transactions is not None:
            end = min(end, self._transactions.last_stable_offset(end))
            aborted = self._transactions.aborted_from(cursor.offset)
        if cursor.offset >= end:
            return
        for batches in cursor.chunks(self._limits.fetch_bytes):
            wanted = OffsetRange(cursor.offset, end)
            taken = take(self._name.topic, self._name.partition, batches, wanted, aborted)
            cursor.offset = taken.next_offset
            if taken.batches:
                yield taken.batches
            if cursor.offset >= end:
                cursor.rewind()
                return


def followed(readers: Sequence[FolderReader], limits: Limits) -> Iterator[list[StoredBatch]]:
    """Yield the batches of the readers, in turns, until all wanted ones are read; wait for those still to be
    written.
    """
    while unfinished := [reader for reader in readers if not reader.is_finished]:
        found_any = False
        for reader in unfinished:
            for batches in reader.available():
                found_any = True
                yield batches
        if not found_any:
            time.sleep(limits.wait_ms / 1000)


class GrowingEnd:
    """The end of the records of a folder for a reader: of all, or of the committed ones. Each look reads only
    the headers of the batches written since the last one.
    """

    def __init__(self, folder: PartitionFolder, isolation_level: int) -> None:
        """
        Raises:
            KafkaError: the log is damaged.
        """
        end = folder.end_offset()
        self._cursor = Cursor(folder, end)
        self._transactions = KnownTransactions(folder, end) if isolation_level == READ_COMMITTED else None

    def now(self) -> int:
        """The end.

        Raises:
            KafkaError: the log is damaged.
        """
        if self._transactions is not None:
            self._transactions.forget_aborted()
            return self._transactions.last_stable_offset()
        for header, _ in self._cursor.headers():
            self._cursor.offset = max(self._cursor.offset, header.next_offset)
        return self._cursor.offset


class KnownTransactions:
    """The transactions of a folder from before an offset on, up to the present end of the log."""

    def __init__(self, folder: PartitionFolder, offset: int) -> None:
        begin, opened = _last_snapshot(folder, offset)
        self._cursor = Cursor(folder, begin)
        self._scan = TransactionScan(opened)

    def last_stable_offset(self, enough: int = NO_END) -> int:
        """The first offset that belongs to an open transaction, or the end of the log; or an offset from
        `enough` on, below which no transaction is open.

        Raises:
            KafkaError: the log is damaged.
        """
        cursor, scan = self._cursor, self._scan
        if cursor.offset >= enough and scan.last_stable_offset(enough) >= enough:
            return enough
        for header, batch in cursor.headers():
            if header.base_offset < cursor.offset:
                continue
            cursor.offset = header.next_offset
            marker = transaction_marker(batch, header) if header.is_control else None
            if marker is not None:
                scan.note_marker(header, marker)
            elif not header.is_control:
                scan.note_batch(header)
            if cursor.offset >= enough and scan.last_stable_offset(enough) >= enough:
                return enough
        return scan.last_stable_offset(cursor.offset)

    def aborted_from(self, offset: int) -> AbortedTransactions:
        """The aborted transactions that end at an offset or behind it, of those that are known."""
        return AbortedTransactions(self._scan.aborted_from(offset))

    def forget_aborted(self) -> None:
        """Forget aborted transactions, for callers that only need the end of committed records."""
        self._scan.aborted.clear()


def _last_snapshot(folder: PartitionFolder, offset: int) -> tuple[int, dict[int, int]]:
    """The newest snapshot up to an offset: its offset, and the first offset of each transaction that was
    open then, by producer id. Without one: the beginning of the log.
    """
    begin = next(iter(folder.base_offsets()), 0)
    for found, path in reversed(folder.files_with(SNAPSHOT_SUFFIX)):
        if begin <= found <= offset:
            with suppress(CorruptSnapshotError, FileNotFoundError):
                states = read_snapshot(folder.read(path))
                return found, {
                    state.producer_id: state.current_txn_first_offset
                    for state in states
                    if state.current_txn_first_offset != NO_OFFSET
                }
    return begin, {}
