"""Disks that are full, broken, or lose power: nothing half-written is served, nothing acknowledged is
lost.
"""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import DiskEvents, Environment, FileJobs
from pykafka_broker.log.disk.files import Entry
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    FOLDER,
    NOW,
    TOPIC_ID,
    append,
    batch,
    names,
    new_log,
    produce,
    records,
    reopened,
    values,
)

LOG = f"{FOLDER}/00000000000000000000.log"


def refused(log: PartitionLog, *data: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        append(log, *data)
    return error.value.code


@pytest.mark.parametrize("room", range(0, 80, 7))
def test_a_full_disk_refuses_the_append_and_takes_it_when_there_is_room_again(room: int) -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    before = files.read_file(LOG)
    files.free_bytes = room

    assert refused(log, b"b" * 100) is ErrorCode.KAFKA_STORAGE_ERROR

    assert files.read_file(LOG) == before
    assert records(log) == [(0, b"a")]
    files.heal()
    assert append(log, b"c").first_offset == 1
    assert values(log) == values(reopened(files.killed())) == [b"a", b"c"]


def test_consumers_are_served_while_the_disk_is_full() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    files.free_bytes = 0

    assert refused(log, b"b") is ErrorCode.KAFKA_STORAGE_ERROR
    assert values(log, limit="high_watermark") == [b"a"]


def test_a_torn_write_that_cannot_be_taken_back_at_once_is_taken_back_before_the_next() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    size = len(files.read_file(LOG))
    files.free_bytes = 30
    files.fail("truncate", errno.EIO)

    assert refused(log, b"b" * 200) is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(files.read_file(LOG)) == size + 30
    assert values(log) == [b"a"]

    files.heal()
    append(log, b"c")
    assert values(log) == values(reopened(files.killed())) == [b"a", b"c"]


def test_a_clean_stop_takes_a_torn_write_back_or_is_not_clean() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    size = len(files.read_file(LOG))
    files.free_bytes = 30
    files.fail("truncate", errno.EIO, times=2)
    refused(log, b"b" * 200)
    assert log.close() is False

    log = reopened(files.killed())
    files.heal()
    assert values(log) == [b"a"]
    assert log.state.size_bytes == size


def test_a_retry_after_a_failed_append_is_appended_not_taken_for_a_duplicate() -> None:
    files = MemoryFiles()
    log = new_log(files)
    produce(log, 1, 0)
    files.free_bytes = 0
    with pytest.raises(KafkaError):
        produce(log, 1, 1)
    files.heal()

    assert produce(log, 1, 1) == (1, 1, -1, 0, False, False)


@pytest.mark.parametrize("operation", ["create", "write_file", "reserve"])
def test_a_roll_that_fails_leaves_the_log_in_service(operation: str) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=150, preallocate=operation == "reserve")
    append(log, b"a")
    append(log, b"b")
    files.fail(operation, errno.ENOSPC)

    assert refused(log, b"c") is ErrorCode.KAFKA_STORAGE_ERROR

    assert append(log, b"c").first_offset == 2
    assert [segment.base_offset for segment in log.state.segments] == [0, 2]
    assert values(log) == [b"a", b"b", b"c"]


def test_a_copy_whose_last_records_compaction_removed_keeps_the_others_while_the_disk_is_full() -> None:
    """Before, each attempt to go on at the end of the source took one more segment out of the copy."""
    files = MemoryFiles()
    copy = new_log(files, segment_bytes=150)
    for n in range(4):
        append(copy, b"%d" % n)
    copy.roller.roll()
    files.fail("create", errno.ENOSPC, times=2)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            copy.trimmer.skip_to(9)

    copy.trimmer.skip_to(9)

    assert append(copy, b"next").first_offset == 9
    assert [segment.base_offset for segment in copy.state.segments] == [0, 2, 9]
    again = reopened(files.killed(), cleanup_policy=frozenset({"compact"}))
    assert values(copy) == values(again) == [b"0", b"1", b"2", b"3", b"next"]


@pytest.mark.parametrize("next_epoch", [3, 4, 5])
def test_a_full_disk_keeps_no_truncation_from_its_end(next_epoch: int) -> None:
    """Before, the file of leader epochs could not be written, and the records that were cut off counted on:
    for consumers as replicated, and for their producer, who sent them again, as written.
    """
    files = MemoryFiles()
    log = new_log(files)
    produce(log, 1, 0, epoch=3)
    produce(log, 1, 1, epoch=4)
    files.free_bytes = 0

    log.trimmer.truncate_to(1)

    assert (log.state.log_end_offset, log.state.high_watermark, log.state.epochs.latest) == (1, 1, 3)
    files.heal()
    assert not produce(log, 1, 1, epoch=next_epoch).duplicate
    again = reopened(files.killed())
    assert values(log) == values(again) == [b"v", b"v"]
    assert [again.state.epochs.epoch_for_offset(offset) for offset in (0, 1)] == [3, next_epoch]


def test_a_truncation_that_a_read_only_disk_refuses_leaves_a_log_without_a_hole() -> None:
    """Before, the log ended where it had, without the records of the segments that were to go."""
    files = MemoryFiles()
    log = new_log(files, segment_bytes=150)
    for n in range(6):
        append(log, b"%d" % n)
    files.fail("remove", errno.EROFS, path="00000000000000000002.log")

    with pytest.raises(OSError, match="Read-only"):
        log.trimmer.truncate_to(1)

    assert log.state.log_end_offset == 4
    assert values(log, limit="log_end") == [b"0", b"1", b"2", b"3"]
    log.trimmer.truncate_to(1)
    append(log, b"next")
    assert values(log) == values(reopened(files.killed())) == [b"0", b"next"]


def test_a_truncation_whose_producers_could_not_be_read_reads_them_when_it_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, a producer who sent again what had been cut off was told that it is written."""
    files = MemoryFiles()
    log = new_log(files)
    produce(log, 1, 0)
    produce(log, 1, 1)

    def entries(directory: str) -> list[Entry]:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Too many open files"):
        patched.setattr(files, "entries", entries)
        log.trimmer.truncate_to(1)

    log.trimmer.truncate_to(1)

    assert not produce(log, 1, 1).duplicate
    assert values(log) == [b"v", b"v"]


def test_a_new_beginning_that_the_disk_refuses_takes_the_log_out_of_service() -> None:
    """Before, the log went on with segments whose files were gone: acknowledged records were lost."""
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    files.fail("create", errno.EMFILE)
    with pytest.raises(OSError, match="Too many open files"):
        log.trimmer.reset_to(1000)

    assert refused(log, b"b") is ErrorCode.KAFKA_STORAGE_ERROR
    again = reopened(files.killed(), log_start_offset=1000)
    assert append(again, b"c").first_offset == 1000


def test_a_broken_disk_is_reported_and_a_full_one_is_not() -> None:
    files = MemoryFiles()
    reported: list[int | None] = []
    environment = Environment(files, events=DiskEvents(on_failure=lambda error: reported.append(error.errno)))
    log = create_log(environment, LogIdentity(FOLDER, "orders", 0, TOPIC_ID), LogConfig())
    for code in (errno.ENOSPC, errno.EROFS, errno.EIO):
        files.fail("pwrite", code)
        assert refused(log, b"a") is ErrorCode.KAFKA_STORAGE_ERROR

    assert reported == [errno.EIO]


def test_a_failed_sync_is_never_retried_as_if_nothing_had_happened() -> None:
    files = MemoryFiles()
    reported: list[OSError] = []
    log = create_log(
        Environment(files, events=DiskEvents(on_failure=reported.append)),
        LogIdentity(FOLDER, "orders", 0, TOPIC_ID),
        LogConfig(),
    )
    append(log, b"a")
    files.fail("sync", errno.EIO, path=".log")

    with pytest.raises(KafkaError) as failed:
        log.flusher.flush()

    assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        log.flusher.flush()
    assert (log.state.recovery_point, len(reported), log.close()) == (0, 1, False)


def test_a_segment_that_is_rolled_while_a_flush_waits_for_the_disk_gets_its_indexes_all_the_same() -> None:
    """The flush once moved the recovery point to the roll, and the next took the rolled segment for done."""
    files = MemoryFiles()
    environment = Environment(files, FileJobs(run_in_turn=lambda job: None))
    log = new_log(files, environment=environment, index_interval_bytes=50)
    for n in range(5):
        append(log, b"%d" % n)

    def roll_once(operation: str, path: str) -> None:
        if operation == "sync":
            files.meanwhile = None
            log.roller.roll()

    files.meanwhile = roll_once
    log.flusher.flush()
    append(log, b"more")
    log.flusher.flush()

    after = files.power_cut()
    assert len(after.read_file(f"{FOLDER}/00000000000000000000.index")) == 8 * 4
    assert values(reopened(after, recovery_point=6)) == [b"0", b"1", b"2", b"3", b"4", b"more"]


# --- power cuts -----------------------------------------------------------------------------------


def test_what_was_flushed_survives_a_power_cut_and_the_rest_is_a_prefix() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    for n in range(10):
        produce(log, 1, n, b"%d" % n)
    assert log.flusher.flush() == 10
    for n in range(10, 20):
        produce(log, 1, n, b"%d" % n)

    log = reopened(files.power_cut(), segment_bytes=300, recovery_point=10)

    survived = values(log)
    assert survived == [b"%d" % n for n in range(len(survived))]
    assert len(survived) >= 10


@pytest.mark.parametrize("flushed", range(12))
def test_a_flush_at_any_moment_keeps_everything_before_it(flushed: int) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=250)
    for n in range(12):
        produce(log, 1, n, b"%d" % n, epoch=n // 5)
        if n == flushed:
            point = log.flusher.flush()

    for recovery_point in (0, point):
        log = reopened(files.power_cut(), segment_bytes=250, recovery_point=recovery_point)
        assert values(log)[: flushed + 1] == [b"%d" % n for n in range(flushed + 1)]
        assert log.state.latest_epoch >= flushed // 5


def test_a_power_cut_before_any_flush_leaves_an_empty_log_that_works() -> None:
    files = MemoryFiles()
    files.make_directory("/logs")
    files.sync_directory("/")
    log = new_log(files)
    append(log, b"a")

    after = files.power_cut()
    after.make_directory(FOLDER)
    log = reopened(after)

    assert values(log) == []
    assert append(log, b"b").first_offset == 0


def test_the_file_order_of_a_flush_is_side_files_first_then_data_then_names() -> None:
    files = MemoryFiles()
    environment = Environment(files, FileJobs(run_in_turn=lambda job: None))
    log = new_log(files, environment=environment, segment_bytes=150)
    for n in range(3):
        append(log, b"%d" % n)
    files.calls.clear()

    log.flusher.flush()

    synced = [path.removeprefix(FOLDER) for operation, path in files.calls if operation == "sync"]
    assert synced == [
        "/00000000000000000002.snapshot",
        "/leader-epoch-checkpoint",
        "/partition.metadata",
        "/00000000000000000000.log",
        "/00000000000000000000.index",
        "/00000000000000000000.timeindex",
        "/00000000000000000002.log",
    ]
    assert files.calls[-2:] == [("sync_directory", FOLDER), ("sync_directory", "/logs")]


def test_flushing_twice_syncs_once() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    log.flusher.flush()
    files.calls.clear()

    log.flusher.flush()
    assert files.calls == []

    append(log, b"b")
    files.calls.clear()
    log.flusher.flush()
    assert files.calls == [("sync", LOG)]


def test_a_disk_that_breaks_at_any_call_never_loses_an_acknowledged_batch() -> None:
    """Every call of a working day fails once, in turn; what was acknowledged is there after kill -9."""
    for skip in range(60):
        files = MemoryFiles()
        log = new_log(files, segment_bytes=250)
        for operation in ("pwrite", "create", "write_file", "rename", "sync", "truncate", "sync_directory"):
            files.fail(operation, errno.EIO, skip=skip)
        acknowledged = []
        for n in range(15):
            try:
                acknowledged.append((append(log, b"%d" % n, epoch=n // 4).first_offset, b"%d" % n))
            except KafkaError as error:
                assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert records(log) == acknowledged

        files.heal()
        assert records(reopened(files.killed(), segment_bytes=250)) == acknowledged
        assert "00000000000000000000.log" in names(files)


def test_an_append_never_waits_for_the_disk() -> None:
    files = MemoryFiles()
    environment = Environment(files, FileJobs(run_in_turn=lambda job: None))
    log = new_log(files, environment=environment, segment_bytes=300)
    files.calls.clear()

    for n in range(20):
        log.writer.append(batch(b"%d" % n), leader_epoch=n // 5, now_ms=NOW)

    assert len(log.state.segments) > 1
    assert {"sync", "sync_directory", "pread"}.isdisjoint(operation for operation, _ in files.calls)
