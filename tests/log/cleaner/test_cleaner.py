"""Compaction of whole logs, in memory: what is served, what is on disk, and what interrupts it."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pykafka_broker.log.cleaner.cleaner import CleanerSettings, ThreadWorker
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.manager.settings import LogSettings, LogWorkers
from pykafka_broker.log.partition.cleaning_job import Job
from pykafka_broker.log.partition.compaction import Compaction
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, iter_batches, read_records
from pykafka_broker.protocol.records.control import EndTransactionMarker, encode_marker
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, end_transaction, log_of_orders
from tests.log.manager.test_log_manager import Broker

FOLDER = "/data/orders-0"
COMPACT: dict[str, Any] = {
    "cleanup_policy": frozenset({"compact"}),
    "segment_bytes": 1000,
    "min_cleanable_dirty_ratio": 0.0,
}
SETTINGS = CleanerSettings(backoff_ms=1000)


async def a_broker(files: MemoryFiles, **settings: Any) -> Broker:
    broker = Broker(
        files,
        config_for=lambda topic: LogConfig(**COMPACT),
        settings=LogSettings(cleaner=SETTINGS._replace(**settings)),
    )
    await broker.start()
    return broker


def a_log(manager: LogManager, **config: Any) -> PartitionLog:
    return manager.create("orders", 0, TOPIC_ID, LogConfig(**{**COMPACT, **config}))


def produce(log: PartitionLog, *records: tuple[bytes, bytes | None], **header: Any) -> int:
    """Write one batch that is visible to consumers; returns its first offset."""
    data = build_batch([(NOW, key, value, ()) for key, value in records], BatchFields(**header))
    offset = log.writer.append(bytearray(data), leader_epoch=0, now_ms=NOW).first_offset
    log.state.advance_high_watermark(log.state.log_end_offset)
    return offset


def fill(log: PartitionLog, count: int, *, keys: int = 5, start: int = 0) -> None:
    for number in range(start, start + count):
        produce(log, (b"%d" % (number % keys), b"%d" % number + bytes(60)))


async def settled(broker: Broker) -> None:
    """Let the cleaner do what it has begun."""
    for _ in range(1000):
        await asyncio.sleep(0)
        if not broker.manager.cleaner.is_at_work:
            return
    raise AssertionError("the cleaner does not come to an end")


async def cleaned(broker: Broker) -> None:
    await broker.pass_time(2)
    await settled(broker)


Found = list[tuple[int, bytes | None, bytes | None]]


def served(log: PartitionLog, *, offset: int = 0) -> Found:
    """(offset, key, value) of every data record, as a consumer reads them."""
    found: Found = []
    while offset < log.state.log_end_offset:
        data = log.reader.plan_read(offset, 500).read()
        if not data:
            break
        for at, header in iter_batches(data):
            if not header.is_control:
                found += [
                    (r.offset, r.key, r.value and r.value.rstrip(b"\0"))
                    for r in read_records(data[at:])
                    if r.offset >= offset
                ]
            offset = header.next_offset
    return found


def newest(records: Sequence[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in records}


async def test_of_every_key_the_newest_record_stays_and_offsets_are_as_before() -> None:
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager)
    fill(log, 50)
    before, size = served(log), log.state.size_bytes
    dirty = log.state.segments[-1].base_offset

    await cleaned(broker)

    after = served(log)
    assert newest(after) == newest(before)
    assert set(after) < set(before)
    assert [offset for offset, *_ in after if offset < dirty] == list(range(dirty - 5, dirty))
    assert log.state.size_bytes < size / 3
    assert (log.state.log_start_offset, log.state.log_end_offset, log.state.cleaned_offset) == (
        0,
        50,
        dirty,
    )
    assert broker.files.read_file("/data/cleaner-offset-checkpoint") == b"0\n1\norders 0 %d\n" % dirty
    for offset in range(51):
        assert [r[0] for r in served(log, offset=offset)] == [r[0] for r in after if r[0] >= offset]


async def test_a_second_round_cleans_what_came_since_and_puts_small_segments_together() -> None:
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager)
    for start in range(0, 200, 50):
        fill(log, 50, start=start)
        await cleaned(broker)
    assert newest(served(log)) == {b"%d" % k: b"%d" % (195 + k) for k in range(5)}
    # What the last round has emptied is put together by the next one, as in Kafka.
    assert [segment.base_offset for segment in log.state.segments][:2] == [0, 147]


async def test_everything_is_as_before_after_a_restart() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 60)
    await cleaned(broker)
    expected, dirty = served(log), log.state.cleaned_offset
    await broker.manager.close()
    for disk in (files, files.killed()):
        again = await a_broker(disk)
        found = again.manager.get("orders", 0)
        assert found is not None
        assert served(found) == expected
        assert found.state.cleaned_offset == dirty
        assert found.reader.search_timestamp(NOW, "high_watermark")() is not None
        fill(found, 1, start=60)


async def test_a_topic_made_anew_is_not_cleaned_while_a_worker_is_at_the_old_one() -> None:
    """Both would write files of the same names into one folder."""
    gate, asked = asyncio.Event(), 0

    async def run_long(work: Callable[[], Any]) -> Any:
        nonlocal asked
        asked += 1
        await gate.wait()
        return work()

    broker = Broker(
        MemoryFiles(),
        config_for=lambda topic: LogConfig(**COMPACT),
        settings=LogSettings(cleaner=SETTINGS._replace(threads=2)),
        run_long=run_long,
    )
    await broker.start()
    fill(a_log(broker.manager), 50)
    await broker.pass_time(2)
    broker.manager.delete("orders", 0)
    await broker.pass_time(1)
    anew = a_log(broker.manager)
    fill(anew, 70)
    expected = newest(served(anew))
    await broker.pass_time(3)
    assert asked == 1

    gate.set()
    await settled(broker)
    await cleaned(broker)
    assert asked == 2
    assert anew.state.cleaned_offset == anew.state.segments[-1].base_offset
    assert newest(served(anew)) == expected


async def test_old_files_stay_for_readers_and_go_after_file_delete_delay() -> None:
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager, file_delete_delay_ms=5000)
    fill(log, 50)
    plan = log.reader.plan_read(0, 300)
    search = log.reader.search_timestamp(NOW)
    await cleaned(broker)
    assert any(name.endswith(".log.deleted") for name in broker.files.inodes)
    await broker.pass_time(6)
    assert not any(name.endswith(".log.deleted") for name in broker.files.inodes)
    assert [r.value for r in read_records(plan.read())] == [b"0" + bytes(60)]
    found = search()
    assert found is not None
    assert found.offset == 0


async def test_keys_that_do_not_fit_into_memory_take_several_rounds() -> None:
    broker = await a_broker(MemoryFiles(), dedupe_buffer_bytes=8 * 24)
    log = a_log(broker.manager)
    fill(log, 120, keys=30)
    dirty = log.state.segments[-1].base_offset
    await broker.pass_time(1)
    offsets: list[int | None] = []
    while broker.manager.cleaner.is_at_work:
        await asyncio.sleep(0)
        if log.state.cleaned_offset not in offsets:
            offsets.append(log.state.cleaned_offset)
    assert len(offsets) > 10
    assert offsets[-1] == dirty
    assert len([offset for offset, *_ in served(log) if offset < dirty]) == 30
    assert newest(served(log)) == {b"%d" % k: b"%d" % (90 + k) for k in range(30)}


async def test_tombstones_are_served_until_delete_retention_has_passed() -> None:
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager, delete_retention_ms=60_000)
    produce(log, (b"gone", b"x"))
    produce(log, (b"gone", None))
    fill(log, 30)
    await cleaned(broker)
    assert (1, b"gone", None) in served(log)
    await broker.pass_time(50)
    fill(log, 30)
    await cleaned(broker)
    assert (1, b"gone", None) in served(log)
    await broker.pass_time(11)
    fill(log, 30)
    await cleaned(broker)
    assert b"gone" not in newest(served(log))


async def test_transactions_are_cleaned_and_readers_of_committed_records_see_the_same() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager, delete_retention_ms=5000)
    for number in range(12):
        guard = log.writer.start_verification(7, 0, number, bumps_epoch=False, now_ms=NOW)
        data = build_batch(
            [(NOW, b"%d" % (number % 4), b"%d" % number + bytes(40), ())],
            BatchFields(producer_id=7, producer_epoch=0, base_sequence=number, transactional=True),
        )
        log.writer.append(bytearray(data), leader_epoch=0, now_ms=NOW, guard=guard)
        end_transaction(log, 7, commit=number % 3 != 0)
        log.state.advance_high_watermark(log.state.log_end_offset)
    log.roller.roll()
    fill(log, 1, start=100)
    await cleaned(broker)
    kept = [value for _, _, value in served(log) if value is not None and len(value) < 3]
    assert kept == [b"5", b"8", b"10", b"11"]
    await broker.pass_time(10)
    fill(log, 60, start=100)
    await cleaned(broker)
    await broker.pass_time(10)
    fill(log, 60, start=100)
    await cleaned(broker)
    assert log.reader.plan_read(0, 10_000, limit="last_stable").aborted_transactions() == []
    await broker.manager.close()
    again = await a_broker(files)
    found = again.manager.get("orders", 0)
    assert found is not None
    assert found.state.producers.producers[7].producer_epoch == 0


async def test_an_idempotent_producer_goes_on_after_compaction_and_restart() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    for number in range(3):
        produce(log, (b"k", b"x"), producer_id=9, producer_epoch=0, base_sequence=number)
    fill(log, 40)
    produce(log, (b"k", b"newest"))
    fill(log, 40)
    await cleaned(broker)
    for path in [path for path in files.inodes if path.endswith((".snapshot", ".window"))]:
        del files.inodes[path]
    again = await a_broker(files.killed())
    found = again.manager.get("orders", 0)
    assert found is not None
    produce(found, (b"k", b"x"), producer_id=9, producer_epoch=0, base_sequence=3)
    with pytest.raises(KafkaError) as refused:
        produce(found, (b"k", b"x"), producer_id=9, producer_epoch=0, base_sequence=9)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_compact_and_delete_sheds_what_is_old_too() -> None:
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10_000)
    fill(log, 50)
    await broker.pass_time(30)
    await settled(broker)
    assert log.state.log_start_offset == 50


async def test_records_without_timestamps_stay_as_old_as_their_file_was() -> None:
    """Retention goes by it: compaction makes nothing younger."""
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=50_000)
    files.now_ms = NOW - 20_000
    for number in range(20):
        data = build_batch([(-1, b"%d" % (number % 5), b"%d" % number + bytes(60), ())])
        log.writer.append(bytearray(data), leader_epoch=0, now_ms=NOW)
    log.state.advance_high_watermark(log.state.log_end_offset)
    files.now_ms = NOW
    await cleaned(broker)
    assert log.state.cleaned_offset == log.state.segments[-1].base_offset
    assert {segment.newest_timestamp_or_mtime() for segment in log.state.segments[:-1]} == {NOW - 20_000}
    await broker.pass_time(40)
    await settled(broker)
    assert log.state.log_start_offset == 20


# --- what interrupts it ---------------------------------------------------------------------------


class Recorder(MemoryFiles):
    """Keeps a copy of the disk from before each change of it, once it is told to."""

    def __init__(self, survivor: Callable[[MemoryFiles], MemoryFiles]) -> None:
        super().__init__()
        self.survivor = survivor
        self.copies: list[tuple[str, MemoryFiles]] | None = None

    def _enter(self, operation: str, path: str) -> None:
        super()._enter(operation, path)
        if operation not in ("pread", "read_file") and self.copies is not None:
            self.copies.append((f"{operation} {path}", self.survivor(self)))


DICE = random.Random(7)


def by_chance(files: MemoryFiles) -> MemoryFiles:
    """A power cut after which some of what was not synced is there all the same."""
    return files.power_cut(DICE)


@pytest.mark.parametrize("survivor", [MemoryFiles.killed, MemoryFiles.power_cut, by_chance, by_chance])
async def test_a_crash_before_any_disk_operation_loses_no_key(
    survivor: Callable[[MemoryFiles], MemoryFiles],
) -> None:
    files = Recorder(survivor)
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 60)
    for _ in range(2):
        produce(log, (b"txn", b"x"))
    expected = newest(served(log))
    log.flusher.flush()
    await broker.manager.writes.checkpoint_recovery_points()
    files.copies = []
    await cleaned(broker)
    assert log.state.cleaned_offset is not None
    copies, files.copies = files.copies, None
    assert len(copies) > 30
    for moment, disk in copies:
        again = await a_broker(disk)
        found = again.manager.get("orders", 0)
        assert found is not None
        found.state.advance_high_watermark(found.state.log_end_offset)
        assert newest(served(found)) == expected, moment
        assert found.state.log_end_offset == log.state.log_end_offset
        assert not [p for p in disk.inodes if p.endswith((".swap", ".cleaned"))], moment
        await cleaned(again)
        assert newest(served(found)) == expected, moment


async def test_a_topic_that_is_deleted_meanwhile_is_left_alone() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 50)

    def delete(operation: str, path: str) -> None:
        if operation == "sync_directory" and path == FOLDER:
            files.meanwhile = None
            broker.manager.delete("orders", 0)
            a_log(broker.manager)

    files.meanwhile = delete
    await cleaned(broker)
    assert broker.manager.dirs.of_partitions[0].is_online
    successor = broker.manager.get("orders", 0)
    assert successor is not None
    assert served(successor) == []
    fill(successor, 2)
    assert len(served(successor)) == 2


async def test_a_log_that_is_truncated_meanwhile_is_not_given_back_what_it_lost() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 50)
    expected = [record for record in served(log) if record[0] < 7]

    def truncate(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".cleaned"):
            files.meanwhile = None
            log.trimmer.truncate_to(7)

    files.meanwhile = truncate
    await cleaned(broker)
    assert served(log) == expected
    assert not [path for path in files.inodes if path.endswith((".cleaned", ".swap"))]
    fill(log, 50, start=7)
    await cleaned(broker)
    assert newest(served(log)) == {b"%d" % k: b"%d" % (55 + k if k < 2 else 50 + k) for k in range(5)}


@pytest.mark.parametrize("crashed", [False, True])
async def test_a_deleted_key_stays_deleted_though_its_tombstone_came_after_a_truncation(
    crashed: bool,
) -> None:
    """Before, the next start took the log for clean up to the offset of before the truncation: the tombstone
    below it was removed, and the record that it deletes was not.
    """
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    produce(log, (b"k", b"deleted"))
    fill(log, 50)
    await cleaned(broker)
    log.trimmer.truncate_to(1)
    if crashed:  # before the checkpoint
        broker, log = await _restarted(files)
    else:
        assert await broker.manager.writes.checkpoint_truncated(log)
    produce(log, (b"k", None))
    fill(log, 50)
    if not crashed:
        broker, log = await _restarted(files)

    for round_number in range(3):
        fill(log, 20, start=round_number)
        await cleaned(broker)

    assert newest(served(log)).get(b"k") is None


async def _restarted(files: MemoryFiles) -> tuple[Broker, PartitionLog]:
    """After a crash, with tombstones that the second cleaning removes."""
    broker = Broker(
        files.killed(),
        config_for=lambda topic: LogConfig(**COMPACT, delete_retention_ms=0),
        settings=LogSettings(cleaner=SETTINGS),
    )
    log = log_of_orders(await broker.start())
    log.state.advance_high_watermark(log.state.log_end_offset)
    return broker, log


async def test_a_log_that_is_truncated_when_its_cleaning_has_ended_is_not_clean_past_its_end() -> None:
    files = MemoryFiles()
    logs: list[PartitionLog] = []

    async def run_long(job: Callable[[], Any]) -> Any:
        result = job()
        for log in logs:
            log.trimmer.truncate_to(7)
        return result

    broker = Broker(
        files,
        run_long=run_long,
        config_for=lambda topic: LogConfig(**COMPACT),
        settings=LogSettings(cleaner=SETTINGS),
    )
    await broker.start()
    log = a_log(broker.manager)
    logs.append(log)
    fill(log, 50)

    await cleaned(broker)

    assert log.state.log_end_offset == 7
    assert log.state.cleaned_offset is None


async def test_a_log_that_is_truncated_to_one_segment_before_its_cleaning_is_cleaned_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, the cleaner found nothing to read, and did not clean the log any more until the next start."""
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager)
    fill(log, 50)
    job = Compaction.job

    def truncated(compaction: Compaction, *args: Any, **settings: Any) -> Job:
        log.trimmer.truncate_to(3)
        return job(compaction, *args, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(Compaction, "job", truncated)
        await cleaned(broker)
    assert len(log.state.segments) == 1

    fill(log, 50)
    await cleaned(broker)

    assert log.state.cleaned_offset == log.state.active.base_offset
    assert broker.manager.cleaner.uncleanable == []


async def test_a_swap_that_lacks_a_descriptor_before_it_begins_is_not_made_up_for_by_a_later_start() -> None:
    """Before, the next start put the cleaned segment in place of what the log had become since."""
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 50)
    await settled(broker)
    log.flusher.flush()

    def exhaust(operation: str, path: str) -> None:
        if operation == "rename" and path.endswith(".txnindex.cleaned"):
            files.meanwhile = None
            files.fail("sync_directory", errno.EMFILE, path=FOLDER)

    files.meanwhile = exhaust
    await cleaned(broker)
    assert not [path for path in files.inodes if path.endswith((".cleaned", ".swap"))]
    log.trimmer.truncate_to(7)
    fill(log, 20, start=100)
    expected = served(log)

    _, log = await _restarted(files)

    assert served(log) == expected


async def test_a_damaged_log_is_left_alone_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 50)
    files.inodes[f"{FOLDER}/00000000000000000000.log"].data[100] ^= 1
    size = log.state.size_bytes
    await cleaned(broker)
    await cleaned(broker)
    assert log.state.size_bytes == size
    assert [r.getMessage() for r in caplog.records if "not cleaned any more" in r.getMessage()] == [
        "orders-0 is not cleaned any more until the next start: segment 0 is damaged at position 0: "
        "Record is corrupt (stored crc = {}, computed crc = {})".format(*_crcs(files))
    ]
    assert log.compaction.may_begin


async def test_a_marker_that_cannot_be_read_is_damage_of_its_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 10)
    offset = end_transaction(log, 7, commit=True).first_offset
    log.roller.roll()
    fill(log, 1)
    key, value = encode_marker(EndTransactionMarker(commit=True, coordinator_epoch=0))
    unreadable = build_batch(
        [(NOW, key, b"\xff\xff" + value[2:], ())],
        BatchFields(offset, 0, producer_id=7, producer_epoch=0, transactional=True, control=True),
    )
    files.inodes[log.state.segments[-2].path + ".log"].data[-len(unreadable) :] = unreadable

    await cleaned(broker)
    assert broker.manager.cleaner.uncleanable == [log]
    assert "Invalid version found for end transaction marker: -1" in caplog.text
    assert broker.manager.dirs.of_partitions[0].is_online


async def test_a_worker_that_dies_does_not_take_the_disk_out_of_service() -> None:
    died: list[Job] = []

    class Mortal(ThreadWorker):
        def clean(self, job: Job, *others: Any) -> int:
            if not died:
                died.append(job)
                raise ChildProcessError("the cleaning process has died")
            return super().clean(job, *others)

    files = MemoryFiles()
    workers = LogWorkers(lambda: Mortal(files, now_s=lambda: 0.0, sleep=lambda _: None))
    broker = Broker(files, settings=LogSettings(cleaner=SETTINGS), workers=workers)
    await broker.start()
    log = a_log(broker.manager)
    fill(log, 50)
    await cleaned(broker)
    assert died and log.state.cleaned_offset is None
    assert broker.manager.dirs.of_partitions[0].is_online
    await cleaned(broker)
    assert log.state.cleaned_offset, "another worker has cleaned it"


async def test_a_log_that_cannot_be_cleaned_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await a_broker(MemoryFiles())
    odd = a_log(broker.manager)
    other = broker.manager.create("payments", 0, bytes(15) + b"p", LogConfig(**COMPACT))
    fill(odd, 100)
    fill(other, 50)
    job = Compaction.job

    def fails(compaction: Compaction, *args: Any, **settings: Any) -> Any:
        if compaction is odd.compaction:
            raise ValueError("odd")
        return job(compaction, *args, **settings)

    monkeypatch.setattr(Compaction, "job", fails)
    for _ in range(3):
        await cleaned(broker)
    assert other.state.cleaned_offset is not None and other.state.cleaned_offset > 0
    assert [r.getMessage() for r in caplog.records if r.exc_info] == ["orders-0 could not be cleaned"]
    assert odd.compaction.may_begin


def _crcs(files: MemoryFiles) -> tuple[int, int]:
    from pykafka_broker.protocol.records.batch import read_header
    from pykafka_broker.protocol.records.crc import crc32c

    data = files.inodes[f"{FOLDER}/00000000000000000000.log"].data
    header = read_header(data)
    return header.crc, crc32c(data[21 : header.size_in_bytes])


async def test_a_full_disk_leaves_nothing_behind_and_is_tried_again() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 50)
    before = served(log)
    files.fail("pwrite", errno.ENOSPC, path=".cleaned")
    await cleaned(broker)
    assert served(log) == before
    assert not [path for path in files.inodes if path.endswith(".cleaned")]
    assert broker.manager.dirs.of_partitions[0].is_online
    await cleaned(broker)
    assert len(served(log)) < len(before)


async def test_a_stop_does_not_wait_for_a_long_round() -> None:
    files = MemoryFiles()
    broker = await a_broker(files)
    log = a_log(broker.manager)
    fill(log, 50)
    asked: list[str] = []

    def stop(operation: str, path: str) -> None:
        if operation == "pread" and not asked:
            asked.append(path)
            for worker in broker.manager.cleaner._workers:
                worker.close()

    files.meanwhile = stop
    await cleaned(broker)
    await broker.manager.close()
    assert log.state.cleaned_offset is None
    assert not [path for path in files.inodes if path.endswith((".cleaned", ".swap"))]


async def test_nothing_is_cleaned_while_the_cleaner_is_switched_off() -> None:
    broker = await a_broker(MemoryFiles(), enable=False)
    log = a_log(broker.manager)
    fill(log, 50)
    await cleaned(broker)
    assert log.state.cleaned_offset is None


async def test_logs_that_are_not_compacted_are_not_touched() -> None:
    broker = await a_broker(MemoryFiles())
    log = a_log(broker.manager, cleanup_policy=frozenset({"delete"}))
    fill(log, 50)
    await cleaned(broker)
    assert len(served(log)) == 50
    log.state.reconfigure(LogConfig(**COMPACT))
    await cleaned(broker)
    assert len(served(log)) < 50
