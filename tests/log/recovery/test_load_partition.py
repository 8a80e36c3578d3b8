"""After a crash: whatever was torn, lost or damaged, what is served is what was written, and all that can
be saved is.

Every byte offset of every file is cut, and every bit of a segment flipped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import decode_epochs
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.names import parse_partition_folder
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.recovery.load_partition import open_log, read_topic_id
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.log.recovery.offset_checkpoints import CheckpointedOffsets
from pykafka_broker.log.segment.batch_scan import BatchScan
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.index import TIME_ENTRY_BYTES
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.records.batch import HEADER_BYTES, Codec, iter_batches, read_records
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    FOLDER,
    NOW,
    ORDERS,
    TOPIC_ID,
    append,
    batch,
    end_transaction,
    names,
    new_log,
    produce,
    records,
    reopened,
    values,
)

#: Writes a log.
Fill = Callable[[PartitionLog], None]

LOG = f"{FOLDER}/00000000000000000000.log"


def plain(log: PartitionLog) -> None:
    for n in range(8):
        append(log, *[b"%d.%d" % (n, i) for i in range(n % 3 + 1)], epoch=n // 3)


def compressed(log: PartitionLog) -> None:
    for n in range(5):
        append(log, *[b"value %d" % n] * 10, codec=Codec(n % 5))


def idempotent(log: PartitionLog) -> None:
    for n in range(8):
        produce(log, n % 2, n // 2)


def transactional(log: PartitionLog) -> None:
    for n in range(3):
        produce(log, n % 2, n // 2, transactional=True)
        end_transaction(log, n % 2, commit=n % 2 == 0)
        log.state.advance_high_watermark(log.state.log_end_offset)


def compacted(log: PartitionLog) -> None:
    """Gaps between batches, inside them, and a batch that lost all its records."""
    headers: dict[int, dict[str, Any]] = {
        2: {},
        10: {"offset_deltas": [0, 4], "last_offset_delta": 7},
        30: {},
    }
    for base, header in headers.items():
        sent = batch(b"x", b"y", base_offset=base, leader_epoch=1, **header)
        log.writer.append(sent, leader_epoch=-1, now_ms=0, origin=AppendOrigin.REPLICATION)
    empty = batch(base_offset=40, leader_epoch=1, last_offset_delta=3)
    log.writer.append(empty, leader_epoch=-1, now_ms=0, origin=AppendOrigin.REPLICATION)


CORPORA = [plain, compressed, idempotent, transactional, compacted]


def written(fill: Fill, **settings: Any) -> tuple[MemoryFiles, PartitionLog]:
    files = MemoryFiles()
    if fill is compacted:
        settings["cleanup_policy"] = frozenset({"compact"})
    log = new_log(files, **settings)
    fill(log)
    return files, log


def settings_of(fill: Fill) -> dict[str, Any]:
    return {"cleanup_policy": frozenset({"compact"})} if fill is compacted else {}


def boundaries(log: PartitionLog) -> list[int]:
    """Where batches end."""
    return [0] + [position + header.size_in_bytes for position, header in log.state.segments[0].headers(0)]


@pytest.mark.parametrize("fill", CORPORA)
def test_a_log_cut_at_any_byte_keeps_exactly_its_whole_batches(fill: Fill) -> None:
    files, log = written(fill)
    whole = records(log)
    data = files.read_file(LOG)
    ends = boundaries(log)

    for cut in range(len(data) + 1):
        after = files.killed()
        after.write_file(LOG, data[:cut], sync=False)

        log = reopened(after, **settings_of(fill))

        kept = max(end for end in ends if end <= cut)
        assert log.state.size_bytes == len(after.read_file(LOG)) == kept
        survived = records(log)
        assert survived == whole[: len(survived)]
        if fill is not compacted:
            append(log, b"next", epoch=9)


@pytest.mark.parametrize("fill", CORPORA)
@pytest.mark.parametrize("side_file", ["index", "timeindex", "snapshot", "window", "txnindex", "epochs"])
def test_any_side_file_cut_at_any_byte_is_rebuilt(fill: Fill, side_file: str) -> None:
    files, log = written(fill, segment_bytes=300)
    whole, known, epochs = records(log), log.state.active_producers(), log.state.epochs.entries
    aborted = [txn for segment in log.state.segments for txn in segment.aborted.entries]
    log.close()
    victims = [
        path
        for path in files.inodes
        if path.endswith("." + side_file) or (side_file == "epochs" and path.endswith("-checkpoint"))
    ]
    for path in victims:
        for cut in range(len(files.read_file(path)) + 1):
            after = files.killed()
            after.write_file(path, files.read_file(path)[:cut], sync=False)

            log = reopened(after, segment_bytes=300, **settings_of(fill))

            assert records(log) == whole
            assert log.state.active_producers() == known
            assert [txn for segment in log.state.segments for txn in segment.aborted.entries] == aborted
            assert log.state.epochs.entries == epochs


@pytest.mark.parametrize("clean", [True, False])
def test_the_aborted_transactions_of_an_old_segment_are_found_again_if_their_file_is_damaged(
    clean: bool,
) -> None:
    """Before, only the newest segment was looked through, and consumers got the records as committed ones."""
    files, log = written(transactional, segment_bytes=300)
    aborted = [segment.aborted.entries for segment in log.state.segments]
    end = log.state.log_end_offset
    log.close()
    path = next(path for path in files.inodes if path.endswith(".txnindex"))
    files.write_file(path, b"\xff" + files.read_file(path)[1:], sync=False)

    log = reopened(files, clean=clean, segment_bytes=300, recovery_point=end)

    assert log.state.segments[-1].path not in path
    assert [segment.aborted.entries for segment in log.state.segments] == aborted
    log.flusher.flush()
    log = reopened(files.power_cut(), segment_bytes=300, recovery_point=log.state.recovery_point)
    assert [segment.aborted.entries for segment in log.state.segments] == aborted


def test_every_flipped_bit_of_a_segment_is_noticed_and_costs_one_batch_at_most() -> None:
    files, log = written(plain)
    whole = records(log)
    data = files.read_file(LOG)
    ends = boundaries(log)
    per_batch = [{offset for offset, _ in records_in(log, start)} for start in ends[:-1]]

    for position in range(len(data)):
        for bit in range(8):
            after = files.killed()
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            after.write_file(LOG, damaged, sync=False)

            log = reopened(after)

            hit = max(n for n, start in enumerate(ends[:-1]) if start <= position)
            served = dict(served_records(log))
            assert served.items() <= dict(whole).items()
            assert {offset for offset, _ in whole} - served.keys() <= per_batch[hit]


def records_in(log: PartitionLog, start: int) -> list[tuple[int, bytes | None]]:
    segment = log.state.segments[0]
    return [(r.offset, r.value) for r in read_records(segment.file.pread(segment.size - start, start))]


def served_records(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """What a consumer gets that steps over ranges answered with CORRUPT_MESSAGE."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.state.log_start_offset
    while offset < log.state.log_end_offset:
        try:
            found += [record for record in fetch(log, offset) if record[0] >= offset]
            offset = found[-1][0] + 1
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            offset += 1
    return found


def fetch(log: PartitionLog, offset: int) -> list[tuple[int, bytes | None]]:
    """One read at `offset`, which returns one batch."""
    data = log.reader.plan_read(offset, 1, limit="log_end").read()
    return [
        (r.offset, r.value)
        for at, header in iter_batches(data)
        if not header.is_control
        for r in read_records(data[at:])
    ]


def test_a_torn_tail_is_cut_with_one_line_that_says_how_much(caplog: pytest.LogCaptureFixture) -> None:
    files, _ = written(plain)
    files.write_file(LOG, files.read_file(LOG) + b"half a batch", sync=False)

    with caplog.at_level(logging.INFO):
        reopened(files)

    assert [record.getMessage() for record in caplog.records] == [
        "orders-0: cut a torn tail of 12 bytes at offset 15 (segment 0, position 638)"
    ]


def test_damage_inside_a_segment_is_fenced_and_everything_behind_it_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files, log = written(plain)
    damaged = bytearray(files.read_file(LOG))
    position, end = boundaries(log)[2:4]
    damaged[position + HEADER_BYTES + 3] ^= 0xFF
    files.write_file(LOG, damaged, sync=False)

    log = reopened(files)

    assert log.state.segments[0].trust.damages == (Damage(position, end, 3, 6),)
    assert "offsets 3 to 5 are damaged" in caplog.text
    assert [offset for offset, _ in served_records(log)] == [0, 1, 2, *range(6, 15)]
    assert [offset for offset, _ in records_before_damage(log)] == [0, 1, 2]
    for offset in (3, 4, 5):
        with pytest.raises(KafkaError) as refused:
            log.reader.plan_read(offset, 1000, limit="log_end")
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def records_before_damage(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    data = log.reader.plan_read(0, 100_000, limit="log_end").read()
    return [(r.offset, r.value) for at, _ in iter_batches(data) for r in read_records(data[at:])]


def test_a_fenced_range_stays_fenced_over_clean_restarts_and_appends() -> None:
    files, log = written(plain)
    damaged = bytearray(files.read_file(LOG))
    damaged[boundaries(log)[2] + HEADER_BYTES + 3] ^= 0xFF
    files.write_file(LOG, damaged, sync=False)
    log = reopened(files)
    log.close()

    log = reopened(files, clean=True)
    append(log, b"more", epoch=9)

    assert [offset for offset, _ in served_records(log)] == [0, 1, 2, *range(6, 16)]
    with pytest.raises(KafkaError):
        log.reader.plan_read(4, 1000)


def test_damage_at_the_end_of_a_closed_segment_is_no_torn_tail() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    for n in range(10):
        append(log, b"%d" % n)
    assert [segment.base_offset for segment in log.state.segments] == [0, 4, 8]
    damaged = bytearray(files.read_file(LOG))
    damaged[-3] ^= 0xFF
    files.write_file(LOG, damaged, sync=False)

    log = reopened(files, segment_bytes=300)

    assert [offset for offset, _ in served_records(log)] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_only_segments_past_the_recovery_point_are_scanned() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    for n in range(10):
        append(log, b"%d" % n)
    damaged = bytearray(files.read_file(LOG))
    damaged[-3] ^= 0xFF
    files.write_file(LOG, damaged, sync=False)

    files.calls.clear()
    log = reopened(files, segment_bytes=300, recovery_point=8)

    assert log.state.segments[0].trust.damages == ()
    assert ("pread", LOG) not in files.calls
    assert log.state.log_end_offset == 10


def test_a_batch_inside_a_torn_batchs_value_is_not_taken_for_one_of_the_log() -> None:
    files, log = written(plain)
    trap = batch(b"trap", base_offset=16, leader_epoch=2)
    append(log, bytes(trap) + b"x" * 100, epoch=2)
    data = files.read_file(LOG)
    files.write_file(LOG, data[:-50], sync=False)

    log = reopened(files)

    assert log.state.log_end_offset == 15
    assert log.state.segments[0].trust.damages == ()


def test_a_log_without_any_index_snapshot_or_checkpoint_comes_back_complete() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    idempotent(log)
    plain(log)
    whole, known, epochs = records(log), log.state.active_producers(), log.state.epochs.entries
    log.close()
    for path in list(files.inodes):
        if not path.endswith((".log", "partition.metadata")):
            files.remove(path)

    log = reopened(files, segment_bytes=300)

    assert (records(log), log.state.active_producers(), log.state.epochs.entries) == (whole, known, epochs)


def test_leftovers_of_deletions_and_compactions_are_finished() -> None:
    files, log = written(plain)
    whole = records(log)
    log.close()
    content = files.read_file(LOG)
    files.rename(LOG, LOG + ".swap")
    for name in ("00000000000000000099.log.deleted", "00000000000000000000.log.cleaned", "x.tmp"):
        files.write_file(f"{FOLDER}/{name}", content, sync=False)

    log = reopened(files, clean=True)

    assert records(log) == whole
    assert not [name for name in names(files) if name.endswith((".deleted", ".cleaned", ".tmp", ".swap"))]


def test_a_clean_stop_is_believed_but_not_blindly() -> None:
    """Once: a marker copied from elsewhere must not make a torn tail pass for data."""
    files, log = written(plain)
    whole = records(log)
    log.close()
    files.write_file(LOG, files.read_file(LOG) + batch(b"torn")[:-5], sync=False)

    assert records(reopened(files, clean=True)) == whole


def test_a_clean_start_reads_the_end_of_the_last_segment_only() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300, index_interval_bytes=50)
    for n in range(30):
        append(log, b"%d" % n)
    last = log.state.segments[-1].path
    log.close()

    files.calls.clear()
    reopened(files, clean=True, segment_bytes=300, index_interval_bytes=50)

    assert {path for operation, path in files.calls if operation == "pread"} == {
        last + ".log",
        last + ".index",
    }
    assert not [path for operation, path in files.calls if operation == "read_file" and "index" in path]


EPOCHS = f"{FOLDER}/leader-epoch-checkpoint"


def test_the_first_record_of_a_new_partition_finds_its_epoch_written_down() -> None:
    files = MemoryFiles()
    log = create_log(Environment(files), ORDERS, LogConfig(), in_first_epoch=True)
    files.calls.clear()

    log.epoch_file.begin(0)
    log.writer.append_client(
        batch(b"v"), leader_epoch=0, now_ms=NOW, produce_version=13, guard=NO_GUARD, defers_names=True
    )

    assert not any(path.startswith(EPOCHS) for _, path in files.calls)
    assert decode_epochs(files.read_file(EPOCHS)) == [(0, 0)]
    assert values(reopened(files)) == [b"v"]


@pytest.mark.parametrize("clean", [True, False])
def test_a_partition_without_records_has_no_epoch_when_it_is_opened_again(clean: bool) -> None:
    """Its file still has one, which costs a start of thousands of such partitions nothing."""
    files = MemoryFiles()
    create_log(Environment(files), ORDERS, LogConfig(), in_first_epoch=True).close()
    files.calls.clear()

    again = reopened(files, clean=clean)

    assert again.state.epochs.entries == ()
    assert not any(operation == "rename" for operation, _ in files.calls)
    append(again, b"v", epoch=2)
    assert decode_epochs(files.read_file(EPOCHS)) == [(2, 0)]
    assert values(reopened(files)) == [b"v"]


def test_leader_epochs_garbled_or_past_the_end_are_put_right() -> None:
    files, log = written(plain)
    path = f"{FOLDER}/leader-epoch-checkpoint"
    good = log.state.epochs.entries
    log.close()
    for garbage in (b"\xff\xfe", b"0\n7\n1 2\n", b"1\n0\n", b"0\n2\n5 3\n4 9\n", b"0\n1\nx y\n"):
        files.write_file(path, garbage, sync=False)
        assert reopened(files, clean=True).state.epochs.entries == good
        assert decode_epochs(files.read_file(path)) == list(good)
    files.write_file(path, b"0\n4\n0 0\n1 6\n2 12\n9 99\n", sync=False)
    assert reopened(files, clean=True).state.epochs.entries == good


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "wrong", [b"0\n1\n7 0\n", b"0\n2\n0 0\n1 9\n", b"0\n3\n0 0\n1 3\n2 6\n", b"0\n1\n0 0\n"]
)
def test_a_checkpoint_of_epochs_that_is_well_formed_and_wrong_costs_no_record(
    wrong: bytes, clean: bool
) -> None:
    files, log = written(plain)
    whole, epochs, end = records(log), log.state.epochs.entries, log.state.log_end_offset
    log.close()
    files.write_file(f"{FOLDER}/leader-epoch-checkpoint", wrong, sync=False)

    log = reopened(files, clean=clean, recovery_point=end if clean else 0)

    assert served_records(log) == whole
    assert log.state.epochs.entries == epochs or clean
    append(log, b"next", epoch=2)


@pytest.mark.parametrize("bit", range(32))
def test_a_flipped_epoch_costs_one_batch_even_when_the_checkpoint_is_lost(bit: int) -> None:
    files, log = written(plain)
    whole = records(log)
    start, end = boundaries(log)[3:5]
    damaged = bytearray(files.read_file(LOG))
    damaged[start + 15 - bit // 8] ^= 1 << bit % 8
    files.write_file(LOG, damaged, sync=False)
    files.remove(f"{FOLDER}/leader-epoch-checkpoint")

    served = served_records(reopened(files))

    hit = {offset for offset, _ in whole if 6 <= offset < 7}
    assert {offset for offset, _ in whole} - {offset for offset, _ in served} <= hit
    assert start < end


def test_nothing_left_at_the_log_start_offset_means_an_empty_log_there() -> None:
    files, log = written(plain)
    log.close()

    log = reopened(files, log_start_offset=100)

    assert (log.state.log_start_offset, log.state.log_end_offset, values(log)) == (100, 100, [])
    assert append(log, b"a", epoch=9).first_offset == 100


def test_what_lies_before_a_log_start_offset_past_the_end_is_kept_in_a_folder_of_its_own() -> None:
    files, log = written(plain, segment_bytes=300)
    log.close()
    before = {name: files.read_file(f"{FOLDER}/{name}") for name in names(files) if name.endswith(".log")}
    assert len(before) > 1

    reopened(files, log_start_offset=100)

    [aside] = [path for path in files.directories if path.endswith("-stray")]
    assert {name: files.read_file(f"{aside}/{name}") for name in before} == before
    assert read_topic_id(files, aside) == TOPIC_ID
    assert parse_partition_folder(aside.removeprefix("/logs/")) == ("orders", 0, "stray")


def test_what_is_set_aside_of_a_topic_whose_id_was_lost_names_none() -> None:
    files, log = written(plain)
    log.close()

    open_log(
        Environment(files),
        LogIdentity(FOLDER, "orders", 0, ZERO_UUID),
        LogConfig(),
        CheckpointedOffsets(log_start_offset=100),
        clean=False,
    )

    [aside] = [path for path in files.directories if path.endswith("-stray")]
    # Apache Kafka takes a whole directory out of service for a partition.metadata that names no topic.
    assert not files.exists(f"{aside}/partition.metadata")
    assert files.exists(f"{aside}/00000000000000000000.log")


def test_a_log_start_offset_past_the_end_is_not_believed_after_a_clean_stop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files, log = written(plain, segment_bytes=300)
    whole, end = records(log), log.state.log_end_offset
    log.close()

    log = reopened(files, clean=True, recovery_point=end, log_start_offset=90)

    assert (log.state.log_start_offset, log.state.log_end_offset, records(log)) == (0, end, whole)
    assert [record.message for record in caplog.records] == [
        f"orders-0: the checkpointed log start offset 90 is past the log's end {end}: ignored, it is now 0"
    ]


@pytest.mark.parametrize("recovery_point", [15, 70])
def test_a_recovery_point_past_what_a_torn_batch_held_does_not_move_the_end(recovery_point: int) -> None:
    files, log = written(plain)
    assert log.state.log_end_offset == 15
    whole = records(log)
    files.write_file(LOG, files.read_file(LOG)[:-3], sync=False)

    log = reopened(files, recovery_point=recovery_point)

    assert log.state.log_end_offset == log.state.recovery_point == 15
    assert [(d.first_offset, d.next_offset) for d in log.state.segments[0].trust.damages] == [(13, 15)]
    assert served_records(log) == whole[:-2]
    assert append(log, b"a", epoch=9).first_offset == 15


def test_a_recovery_point_that_the_high_watermark_confirms_is_believed_of_a_log_that_lost_its_end() -> None:
    files, log = written(plain)
    whole = records(log)
    [*_, (start, last)] = iter_batches(files.read_file(LOG))
    [*_, (start_before, before), _] = iter_batches(files.read_file(LOG))
    files.write_file(LOG, files.read_file(LOG)[: start - 3], sync=False)

    log = reopened(files, recovery_point=15, high_watermark=15)

    assert (before.size_in_bytes, log.state.log_end_offset) == (start - start_before, 15)
    assert [(d.first_offset, d.next_offset) for d in log.state.segments[0].trust.damages] == [
        (before.base_offset, 15)
    ]
    assert served_records(log) == [(offset, value) for offset, value in whole if offset < before.base_offset]
    assert append(log, b"a", epoch=9).first_offset == 15 > last.base_offset


def test_a_scan_is_happy_with_batches_larger_than_its_buffer() -> None:
    files = MemoryFiles()
    log = new_log(files, max_message_bytes=1 << 24)
    for size in (3_000_000, 10, 1_500_000):
        append(log, b"x" * size)

    scan = BatchScan(log.state.segments[0].file.pread, log.state.size_bytes, 0)

    assert [header.base_offset for _, header in scan] == [0, 1, 2]
    assert scan.valid_end == log.state.size_bytes


@pytest.mark.parametrize("fill", CORPORA)
def test_a_clean_marker_that_lies_never_makes_a_wrong_record_served_nor_stops_the_start(fill: Fill) -> None:
    """Every file of a cleanly stopped folder, cut and flipped here and there, opened as if nothing had
    happened.
    """
    files, log = written(fill, segment_bytes=300)
    whole, end = dict(records(log)), log.state.log_end_offset
    log.close()
    for path in [path for path in files.inodes if not path.endswith("partition.metadata")]:
        good = files.read_file(path)
        starts = [start for start, _ in iter_batches(good)] if path.endswith(".log") else []
        # Base offset and leader epoch, which no checksum covers: see the next test.
        outside_crc = {start + n for start in starts for n in (*range(8), *range(12, 16))}
        damaged = [good[:cut] for cut in range(0, len(good), 11)]
        damaged += [
            good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :]
            for at in range(0, len(good), 7)
            if at not in outside_crc
        ]
        for content in damaged:
            after = files.killed()
            after.write_file(path, content, sync=False)

            log = reopened(after, clean=True, segment_bytes=300, recovery_point=end, **settings_of(fill))

            for offset in range(log.state.log_start_offset, log.state.log_end_offset):
                try:
                    served = fetch(log, offset)
                except KafkaError as error:
                    assert error.code is ErrorCode.CORRUPT_MESSAGE
                else:
                    assert dict(served).items() <= whole.items()


@pytest.mark.parametrize("clean", [True, False], ids=["marker", "no marker"])
@pytest.mark.parametrize("at", [*range(8), *range(12, 16)])
def test_a_flip_outside_the_checksum_of_the_last_batch_is_noticed_even_after_a_clean_stop(
    clean: bool, at: int
) -> None:
    files, log = written(plain)
    whole, end = records(log), log.state.log_end_offset
    last = boundaries(log)[-2]
    log.close()
    damaged = bytearray(files.read_file(LOG))
    damaged[last + at] ^= 1
    files.write_file(LOG, damaged, sync=False)

    again = reopened(files.killed(), clean=clean, recovery_point=end)
    assert served_records(again) == whole[:13]
    assert again.state.log_end_offset == end, "it was on disk: damaged, not torn"
    append(again, b"next", epoch=2)
    assert served_records(again) == [*whole[:13], (end, b"next")]

    unsynced = reopened(files, clean=clean, recovery_point=13)
    assert (records(unsynced), unsynced.state.log_end_offset) == (whole[:13], 13)


def test_damage_found_by_a_reader_is_fenced_and_what_is_behind_it_is_served() -> None:
    """A header gone bad in a closed segment, below the recovery point, where no start looks."""
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    for n in range(12):
        append(log, b"%d" % n)
    log.close()
    damaged = bytearray(files.read_file(LOG))
    damaged[69 + 16] = 7
    files.write_file(LOG, damaged, sync=False)

    log = reopened(files, clean=True, segment_bytes=300)

    assert [offset for offset, _ in served_records(log)] == [0, *range(2, 12)]
    assert log.state.segments[0].trust.damages == (Damage(69, 138, 1, 2),)
    assert f"{FOLDER}/00000000000000000000.damaged" in files.inodes


def test_offsets_do_not_jump_over_what_a_power_cut_took_from_the_segment_before_an_empty_one() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    while len(log.state.segments) < 3:
        append(log, b"%d" % log.state.log_end_offset)
    _, second, third = log.state.segments
    kept = second.base_offset
    # The names reached the disk, of the second segment's bytes a part, of the third's none.
    torn = [position for position, _ in second.headers(0)][1] + 10
    files.inodes[f"{second.path}.log"].data[torn:] = b""
    files.inodes[f"{third.path}.log"].data[:] = b""

    again = reopened(files, segment_bytes=300)

    assert again.state.log_end_offset == kept + 1
    assert [segment.trust.damages for segment in again.state.segments] == [(), ()]
    append(again, b"next")
    assert values(again) == [b"%d" % offset for offset in range(kept + 1)] + [b"next"]
    assert f"{third.path}.log" not in files.inodes


def test_a_retry_of_what_a_crash_left_unsynced_waits_for_the_sync_too() -> None:
    files = MemoryFiles()
    log = new_log(files, flush_messages=1)
    assert produce(log, 7, 0).flush_due

    again = reopened(files, flush_messages=1)
    retried = produce(again, 7, 0)

    assert (retried.duplicate, retried.flush_due) == (True, True)
    again.flusher.flush()
    assert not produce(again, 7, 0).flush_due


@pytest.mark.parametrize("cut", [1, TIME_ENTRY_BYTES, 2 * TIME_ENTRY_BYTES + 5])
def test_a_time_index_that_lost_its_end_hides_no_record_and_does_not_age_its_segment(cut: int) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=700, index_interval_bytes=100)
    for number in range(30):
        append(log, b"%d" % number, timestamp=NOW + 1000 * number)
    closed = log.state.segments[0]
    newest = closed.max_timestamp
    log.close()
    del files.inodes[f"{closed.path}.timeindex"].data[-cut:]

    again = reopened(files, clean=True)

    assert again.state.segments[0].max_timestamp == newest
    for number in range(30):
        found = again.reader.search_timestamp(NOW + 1000 * number)()
        assert found is not None
        assert found.offset == number


def test_every_flipped_bit_of_a_time_index_leads_a_search_to_the_same_record() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=700, index_interval_bytes=100)
    for number in range(30):
        append(log, b"%d" % number, timestamp=NOW + 1000 * number)
    path = f"{log.state.segments[0].path}.timeindex"
    count = log.state.segments[1].base_offset
    log.close()
    size = len(files.inodes[path].data)
    assert size > 3 * TIME_ENTRY_BYTES
    for bit in range(8 * size):
        damaged = files.killed()
        damaged.inodes[path].data[bit // 8] ^= 1 << bit % 8
        again = reopened(damaged, clean=True)
        offsets = [again.reader.search_timestamp(NOW + 1000 * n)() for n in range(count)]
        assert [found and found.offset for found in offsets] == list(range(count)), bit
