"""Folders of partitions are read while they are written, in copies, and when they are damaged."""

from __future__ import annotations

import struct

import pytest

from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import schema_of
from pykafka_broker.arrow.core.fetched import READ_COMMITTED, READ_UNCOMMITTED
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange
from pykafka_broker.arrow.folder import FolderReader, GrowingEnd, KnownTransactions, look_up
from pykafka_broker.arrow.partition_folder import PartitionFolder, open_folders
from pykafka_broker.arrow.ranges import EARLIEST, LATEST
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, NOW, TOPIC_ID, append, end_transaction, new_log, produce

SMALL = Limits(fetch_bytes=200)


def folder_of(files: FileSystem) -> PartitionFolder:
    """The folder of orders-0."""
    _, folders = open_folders(files, FOLDER, None)
    return folders[0]


def reader(files: FileSystem, start: int = 0, end: int = NO_END, *, level: int = 0) -> FolderReader:
    """A reader that takes a batch or two at a time."""
    return FolderReader(folder_of(files), OffsetRange(start, end), level, SMALL)


def read(reading: FolderReader) -> list[tuple[int, bytes]]:
    """Offset and value of what the reader finds now."""
    assembly = Assembly("orders", schema_of(["offset", "value"]), SMALL)
    return [
        (row["offset"], row["value"])
        for some in reading.available()
        for batch in assembly.record_batches(some)
        for row in batch.to_pylist()
    ]


def numbered(*offsets: int) -> list[tuple[int, bytes]]:
    return [(offset, value(offset)) for offset in offsets]


def value(offset: int) -> bytes:
    return b"value %03d" % offset


def filled(log: PartitionLog, count: int) -> PartitionLog:
    """The log with so many batches of one record more; times ascend by a second."""
    for _ in range(count):
        offset = log.state.log_end_offset
        append(log, value(offset), timestamp=NOW + 1000 * offset)
    return log


def transact(log: PartitionLog, producer_id: int, sequence: int) -> None:
    """Produce a record of a transaction."""
    produce(log, producer_id, sequence, value(log.state.log_end_offset), transactional=True)


# -- segments
# -----------


def test_the_segments_of_a_folder_are_read_one_after_the_other() -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=300, index_interval_bytes=0), 20)

    assert len(folder_of(files).base_offsets()) > 3
    assert read(reader(files)) == numbered(*range(20))


@pytest.mark.parametrize("start", range(0, 21, 3))
def test_reading_begins_and_ends_at_any_offset(start: int) -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=300, index_interval_bytes=0), 20).close()

    assert read(reader(files, start, start + 4)) == numbered(*range(start, min(start + 4, 20)))


def test_a_reader_goes_on_with_what_was_written_since() -> None:
    files = MemoryFiles()
    log = filled(new_log(files, segment_bytes=300), 3)
    reading = reader(files)

    assert read(reading) == numbered(0, 1, 2)
    assert read(reading) == []
    filled(log, 5)  # into this segment and another one
    assert read(reading) == numbered(3, 4, 5, 6, 7)


def test_a_batch_that_is_being_written_is_read_when_it_is_complete() -> None:
    files = MemoryFiles()
    log = filled(new_log(files), 3)
    inode = files.inodes[f"{FOLDER}/{0:020d}.log"]
    whole = bytes(inode.data)
    inode.data = bytearray(whole[:-5])
    reading = reader(files)

    assert read(reading) == numbered(0, 1)
    assert look_up(folder_of(files), LATEST) == 2
    inode.data = bytearray(whole)
    assert read(reading) == numbered(2)
    assert look_up(folder_of(files), LATEST) == log.state.log_end_offset


def test_a_file_may_be_larger_than_its_batches() -> None:
    files = MemoryFiles()
    filled(new_log(files), 3)
    files.inodes[f"{FOLDER}/{0:020d}.log"].data += bytes(10_000)

    assert read(reader(files)) == numbered(0, 1, 2)
    assert look_up(folder_of(files), LATEST) == 3


def test_segments_that_were_merged_meanwhile_are_read_on_in_the_first_of_them() -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=200, index_interval_bytes=0), 9)
    reading = reader(files)
    available = reading.available()
    next(available)
    first, second, *_ = folder_of(files).base_offsets()
    merged = files.inodes.pop(f"{FOLDER}/{second:020d}.log")
    replaced = type(merged)(bytes(files.inodes[f"{FOLDER}/{first:020d}.log"].data) + bytes(merged.data))
    files.inodes[f"{FOLDER}/{first:020d}.log"] = replaced
    for _ in available:
        pass

    assert reading._cursor.offset == 9
    assert read(reader(files)) == numbered(*range(9))


def test_records_that_retention_has_removed_are_missed_loudly() -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=200), 9)
    first, second, *_ = folder_of(files).base_offsets()
    files.remove(f"{FOLDER}/{first:020d}.log")

    with pytest.raises(KafkaError, match=f"orders-0 has no offset 0: it begins at {second}") as missed:
        read(reader(files))
    assert missed.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_log_begins_behind_the_records_that_were_deleted() -> None:
    files = MemoryFiles()
    filled(new_log(files), 3)
    checkpoint = "/logs/log-start-offset-checkpoint"
    files.write_file(checkpoint, b"0\n2\norders 0 2\nother 0 9\n", sync=False)

    assert look_up(folder_of(files), EARLIEST) == 2
    files.write_file(checkpoint, b"garbage", sync=False)
    assert look_up(folder_of(files), EARLIEST) == 0


def test_an_empty_folder_has_no_records() -> None:
    files = MemoryFiles()
    new_log(files)

    assert (look_up(folder_of(files), EARLIEST), look_up(folder_of(files), LATEST)) == (0, 0)
    assert read(reader(files)) == []


# -- parts
# --------


@pytest.mark.parametrize("index", ["right", "missing", "of the beginning", "wrong"])
@pytest.mark.parametrize("segment_bytes", [300, 100_000])
@pytest.mark.parametrize("wanted", [OffsetRange(0, 60), OffsetRange(7, 43), OffsetRange(59, 60)], ids=str)
def test_a_range_is_divided_into_parts_of_about_the_same_size(
    segment_bytes: int, index: str, wanted: OffsetRange
) -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=segment_bytes, index_interval_bytes=0), 60).close()
    for path in [path for path in files.inodes if path.endswith(".index")]:
        data = bytes(files.inodes[path].data)
        files.remove(path)
        if index != "missing":
            changed = {"right": data, "of the beginning": data[:80], "wrong": b"\0\0\0\1" * 20}[index]
            files.write_file(path, changed, sync=False)

    folder = folder_of(files)
    parts = folder.divided(wanted, 500)

    assert (parts[0].start, parts[-1].end) == wanted
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
    sizes = [(part.end - part.start) * 77 for part in parts]
    assert all(350 < size < 800 for size in sizes[:-1]), sizes
    assert [row for part in parts for row in read(reader(files, *part))] == numbered(*range(*wanted))


def test_the_bytes_of_a_range_are_known_by_its_index() -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=300, index_interval_bytes=0), 60).close()
    folder = folder_of(files)
    stored = sum(len(inode.data) for path, inode in files.inodes.items() if path.endswith(".log"))

    assert 0.95 * stored <= folder.bytes_of(OffsetRange(0, 60)) <= stored
    assert 0.4 * stored <= folder.bytes_of(OffsetRange(15, 45)) <= 0.6 * stored
    assert folder.bytes_of(OffsetRange(60, 60)) == 0


# -- times
# --------


@pytest.mark.parametrize("closed", [False, True], ids=["written", "closed"])
def test_a_time_is_found_with_and_without_indexes(closed: bool) -> None:
    files = MemoryFiles()
    log = filled(new_log(files, segment_bytes=300, index_interval_bytes=0), 20)
    if closed:
        log.close()
    folder = folder_of(files)

    assert [look_up(folder, NOW + 1000 * offset - 500) for offset in (0, 1, 7, 19)] == [0, 1, 7, 19]
    assert look_up(folder, NOW + 1000 * 19) == 19
    assert look_up(folder, NOW + 1000 * 20) == -1


# -- damage
# ---------


@pytest.mark.parametrize("place", [3, 16, 40, 70], ids=["offset", "magic", "header", "record"])
def test_a_damaged_batch_ends_reading_with_its_place(place: int) -> None:
    files = MemoryFiles()
    filled(new_log(files), 3)
    data = files.inodes[f"{FOLDER}/{0:020d}.log"].data
    data[len(data) // 3 + place] ^= 0xFF

    with pytest.raises(KafkaError, match="partition orders-0 at offset") as refused:
        read(reader(files))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_segment_that_ends_within_a_batch_is_damaged_if_another_one_follows() -> None:
    files = MemoryFiles()
    filled(new_log(files, segment_bytes=300), 9)
    first = f"{FOLDER}/{0:020d}.log"
    del files.inodes[first].data[-3:]

    with pytest.raises(
        KafkaError, match=r"orders-0 at offset \d is invalid, cause: No whole batch in the last"
    ):
        read(reader(files))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_wrong_index_costs_time_and_nothing_else(suffix: str) -> None:
    files = MemoryFiles()
    filled(new_log(files, index_interval_bytes=0), 9).close()
    path = f"{FOLDER}/{0:020d}{suffix}"
    data = files.inodes[path].data
    for wrong in (b"", bytes(len(data)), struct.pack(">ii", 5, 77), bytes(data[8:]), b"\xff" * 24):
        files.write_file(path, wrong, sync=False)
        assert read(reader(files, 4)) == numbered(4, 5, 6, 7, 8)
        assert look_up(folder_of(files), NOW + 3000) == 3
        assert look_up(folder_of(files), LATEST) == 9


# -- transactions
# ---------------


def interleaved(log: PartitionLog) -> None:
    """Offsets 0, 1, 4: aborted; 2, 3, 6: committed; 8: plain; 9: open; 10: plain."""
    transact(log, 1, 0)
    transact(log, 1, 1)
    transact(log, 2, 0)
    filled(log, 1)
    transact(log, 1, 2)
    end_transaction(log, 1, commit=False)  # 5
    transact(log, 2, 1)
    end_transaction(log, 2, commit=True)  # 7
    filled(log, 1)
    transact(log, 1, 3)
    filled(log, 1)


@pytest.mark.parametrize("segment_bytes", [150, 400, 10_000])
def test_only_committed_records_are_read_up_to_the_first_open_transaction(segment_bytes: int) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=segment_bytes)
    interleaved(log)
    reading = reader(files, level=READ_COMMITTED)

    assert read(reading) == numbered(2, 3, 6, 8)
    end_transaction(log, 1, commit=True)  # 11
    assert read(reading) == numbered(9, 10)
    assert read(reader(files, level=READ_UNCOMMITTED)) == numbered(0, 1, 2, 3, 4, 6, 8, 9, 10)


@pytest.mark.parametrize("start", range(12))
@pytest.mark.parametrize("with_snapshots", [True, False], ids=["with snapshots", "without"])
def test_committed_records_are_the_same_from_any_offset_on(start: int, with_snapshots: bool) -> None:
    files = MemoryFiles()
    interleaved(new_log(files, segment_bytes=200))
    if not with_snapshots:
        for path in [path for path in files.inodes if path.endswith((".snapshot", ".txnindex"))]:
            files.remove(path)

    assert read(reader(files, start, level=READ_COMMITTED)) == [
        row for row in numbered(2, 3, 6, 8) if row[0] >= start
    ]


def test_a_transaction_that_was_open_before_the_first_wanted_offset_holds_everything_back() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=200)
    transact(log, 1, 0)
    filled(log, 6)

    assert read(reader(files, 3, level=READ_COMMITTED)) == []


def test_no_more_of_the_log_is_looked_at_than_tells_which_transactions_count() -> None:
    files = MemoryFiles()
    log = new_log(files)
    interleaved(log)
    filled(log, 20)
    known = KnownTransactions(folder_of(files), 0)

    assert known.last_stable_offset(3) == 3
    assert known._cursor.offset == 8  # behind the marker of producer 2, whose transaction began at 2
    assert known.last_stable_offset(9) == 9
    assert known._cursor.offset == 9
    assert known.last_stable_offset(10) == 9
    assert known.last_stable_offset() == 9


@pytest.mark.parametrize("end", range(1, 11))
def test_committed_records_are_the_same_up_to_any_offset(end: int) -> None:
    files = MemoryFiles()
    interleaved(new_log(files, segment_bytes=200))

    assert read(reader(files, 0, end, level=READ_COMMITTED)) == [
        row for row in numbered(2, 3, 6, 8) if row[0] < end
    ]


def test_the_end_of_a_log_is_followed_as_it_grows() -> None:
    files = MemoryFiles()
    log = filled(new_log(files, segment_bytes=300), 4)
    everything = GrowingEnd(folder_of(files), READ_UNCOMMITTED)
    committed = GrowingEnd(folder_of(files), READ_COMMITTED)

    assert (everything.now(), committed.now()) == (4, 4)
    filled(log, 5)
    transact(log, 1, 0)
    assert (everything.now(), committed.now()) == (10, 9)
    end_transaction(log, 1, commit=False)
    assert (everything.now(), committed.now()) == (11, 11)


# -- folders
# ----------


def test_a_log_directory_has_the_partitions_of_a_topic() -> None:
    files = MemoryFiles()
    for name in ("orders-0", "orders-2", "other-1", "orders-1.0123456789abcdef0123456789abcdef-delete"):
        files.make_directory(f"/logs/{name}")

    topic, folders = open_folders(files, "/logs", "orders")

    assert (topic, list(folders)) == ("orders", [0, 2])
    with pytest.raises(KafkaError, match="There is no folder of topic 'orderz' in /logs"):
        open_folders(files, "/logs", "orderz")


def test_a_folder_says_which_topic_it_is_of() -> None:
    files = MemoryFiles()
    new_log(files)

    assert folder_of(files).topic_id() == uuid_text(TOPIC_ID)
    files.remove(f"{FOLDER}/partition.metadata")
    assert folder_of(files).topic_id() is None


def test_a_folder_without_the_name_of_a_partition_is_refused() -> None:
    files = MemoryFiles()
    files.make_directory("/logs/copy")

    with pytest.raises(ValueError, match="is no folder of a partition"):
        open_folders(files, "/logs/copy", None)
