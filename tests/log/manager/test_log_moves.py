"""A partition moves to another log directory while it is written: nothing is lost or doubled, whatever
breaks on the way.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.log.manager import log_moves
from pykafka_broker.log.manager.future_log import LogMove
from pykafka_broker.log.manager.log_folders import LogFolders
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.manager.log_moves import LogMoves
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import build_batch, iter_batches
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    NOW,
    TOPIC_ID,
    append,
    batch,
    end_transaction,
    log_of_orders,
    produce,
    records,
    values,
)
from tests.log.manager.test_log_manager import OTHER_ID, Broker, folders

pytestmark = pytest.mark.acknowledged

STEP_BYTES = 400
SMALL = LogConfig(segment_bytes=600)


async def two_dirs(files: MemoryFiles, **settings: Any) -> LogManager:
    return await Broker(files, "/a", "/b", **settings).start()


async def begin(manager: LogManager, to: str = "/b") -> LogMove:
    log_dir = next(d for d in manager.dirs.of_partitions if d.path == to)
    return await manager.moves.begin("orders", 0, log_dir)


async def copy(move: LogMove, steps: int = 1000) -> None:
    """Carry out steps of a move as its mover does, until it has caught up."""
    for _ in range(steps):
        if (offset := move.divergence()) is not None:
            move.truncate(offset)
        if move.lag == 0:
            return
        plan, end_offset = move.plan(STEP_BYTES), move.source.state.log_end_offset
        await asyncio.sleep(0)
        move.copy(plan, end_offset)


async def finish(manager: LogManager, move: LogMove) -> PartitionLog:
    await copy(move)
    move.future.flusher.flush()
    assert move.close_gap(STEP_BYTES)
    manager.moves.swap(move)
    await manager.moves.clear_up(move)
    return log_of_orders(manager)


def orders(manager: LogManager, config: LogConfig = SMALL) -> PartitionLog:
    """The partition, in /a, with a few segments of batches."""
    log = manager.create("orders", 0, TOPIC_ID, config, manager.dirs.of_partitions[0].directory_id)
    for number in range(12):
        produce(log, 7, number, b"%d" % number * 20, epoch=number // 5)
    return log


ALL = [(n, b"%d" % n * 20) for n in range(12)]


async def test_a_log_moves_with_all_that_belongs_to_it() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    source.trimmer.delete_records(2)
    move = await begin(manager)
    assert [name.split(".")[0] for name in folders(files, "/b")] == ["orders-0"]
    assert folders(files, "/b")[0].endswith("-future")

    log = await finish(manager, move)

    assert log is not source
    assert (log.directory, manager.moves.under_way) == ("/b/orders-0", {})
    assert records(log) == ALL[2:]
    assert (log.state.log_start_offset, log.state.high_watermark, log.state.last_stable_offset) == (2, 12, 12)
    assert (log.state.latest_epoch, log.state.epochs.entries) == (2, source.state.epochs.entries)
    assert produce(log, 7, 11, epoch=2).duplicate
    assert produce(log, 7, 12, b"more", epoch=2).first_offset == 12
    assert [name.split(".")[1][-7:] for name in folders(files, "/a")] == ["-delete"]
    with pytest.raises(KafkaError):
        append(source, b"late")

    again = log_of_orders(await two_dirs(files.killed()))
    assert records(again) == [*ALL[2:], (12, b"more")]


async def test_the_old_folder_is_removed_after_file_delete_delay_ms() -> None:
    files = MemoryFiles()
    broker = Broker(files, "/a", "/b")
    manager = await broker.start()
    orders(manager)
    await finish(manager, await begin(manager))
    await broker.pass_time(59)
    assert len(folders(files, "/a")) == 1
    await broker.pass_time(2)
    assert folders(files, "/a") == []


async def test_what_is_written_during_the_move_is_in_the_new_place() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    move = await begin(manager)
    for number in range(12, 30):
        await copy(move, steps=1)
        produce(source, 7, number, b"%d" % number * 20, epoch=3)
    log = await finish(manager, move)
    assert records(log) == [(n, b"%d" % n * 20) for n in range(30)]


async def test_a_transaction_goes_on_where_the_partition_is_now() -> None:
    manager = await two_dirs(MemoryFiles())
    source = orders(manager)
    append(source, b"one", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True, epoch=2)
    end_transaction(source, 9, commit=False, epoch=2)
    guard = source.writer.start_verification(9, 0, 1, bumps_epoch=False, now_ms=NOW)
    stable = source.state.last_stable_offset
    move = await begin(manager)
    log = await finish(manager, move)

    batch_two = batch(b"two", producer_id=9, producer_epoch=0, base_sequence=1, transactional=True)
    log.writer.append(batch_two, leader_epoch=2, now_ms=NOW, guard=guard)
    log.state.advance_high_watermark(log.state.log_end_offset)

    assert (stable, log.state.last_stable_offset) == (12, 14)
    plan = log.reader.plan_read(0, 10_000, limit="last_stable")
    assert [txn.first_offset for segment in log.state.segments for txn in segment.aborted.entries] == [12]
    assert plan.size_bytes


async def test_readers_read_on_through_the_swap() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    for segment in source.state.segments:
        segment.release()
    files.is_cached = False
    plans = [source.reader.plan_read(offset, 100) for offset in range(12)]
    found = source.reader.search_timestamp(NOW)
    woken: list[LogState] = []
    source.on_advance.append(woken.append)
    move = await begin(manager)
    log = await finish(manager, move)

    assert all(plan.read() for plan in plans)
    at_now = found()
    assert at_now is not None and at_now.offset == 0
    woken.clear()
    append(log, b"new", epoch=2)
    assert woken == [log.state], "who waited for the old log hears of the new one"


async def test_records_deleted_meanwhile_are_deleted_there_too() -> None:
    manager = await two_dirs(MemoryFiles())
    source = orders(manager)
    move = await begin(manager)
    await copy(move, steps=1)
    source.trimmer.delete_records(9)
    log = await finish(manager, move)
    assert (log.state.log_start_offset, records(log)) == (9, ALL[9:])


async def test_retention_can_overtake_the_copy() -> None:
    manager = await two_dirs(MemoryFiles())
    source = orders(manager)
    move = await begin(manager)
    await copy(move, steps=1)
    copied = move.future.state.log_end_offset
    source.trimmer.delete_records(8)
    source.trimmer.apply_retention(NOW)
    assert source.state.segments[0].base_offset > copied
    log = await finish(manager, move)
    assert (log.state.log_start_offset, records(log)) == (8, ALL[8:])


async def test_a_log_start_inside_a_batch_is_kept() -> None:
    manager = await two_dirs(MemoryFiles())
    source = manager.create("orders", 0, TOPIC_ID, SMALL, manager.dirs.of_partitions[0].directory_id)
    append(source, b"a", b"b", b"c")
    source.trimmer.delete_records(1)
    log = await finish(manager, await begin(manager))
    assert (log.state.log_start_offset, records(log)) == (1, [(1, b"b"), (2, b"c")])


async def test_an_empty_log_moves() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    manager.create("orders", 0, TOPIC_ID, SMALL, manager.dirs.of_partitions[0].directory_id)
    log = await finish(manager, await begin(manager))
    assert append(log, b"a").first_offset == 0
    again = log_of_orders(await two_dirs(files.killed()))
    assert (again.directory, again.topic_id, values(again)) == ("/b/orders-0", TOPIC_ID, [b"a"])


COMPACTED = LogConfig(segment_bytes=600, cleanup_policy=frozenset({"compact"}))


def keyed(manager: LogManager, count: int) -> PartitionLog:
    """A compacted partition in /a, a record for each offset."""
    log = manager.create("orders", 0, TOPIC_ID, COMPACTED, manager.dirs.of_partitions[0].directory_id)
    for number in range(count):
        records = [(NOW, b"%d" % number, b"v" * 100, ())]
        log.writer.append(bytearray(build_batch(records)), leader_epoch=0, now_ms=NOW)
        log.state.advance_high_watermark(log.state.log_end_offset)
    return log


async def test_a_log_whose_end_was_compacted_away_moves_with_its_end() -> None:
    manager = await two_dirs(MemoryFiles())
    source = keyed(manager, 8)
    source.roller.roll()
    source.density.allow_gaps_below(8)
    source.state.segments[-2].truncate_to(7)
    log = await finish(manager, await begin(manager))
    assert (log.state.log_end_offset, records(log)) == (8, [(n, b"v" * 100) for n in range(7)])
    append_keyed = bytearray(build_batch([(NOW, b"k", b"next", ())]))
    assert log.writer.append(append_keyed, leader_epoch=0, now_ms=NOW).first_offset == 8


async def test_nothing_is_compacted_while_it_is_copied() -> None:
    """A tombstone that went between two steps would let the record before it come back."""
    manager = await two_dirs(MemoryFiles())
    source = keyed(manager, 8)
    may_begin = [source.compaction.may_begin]
    await begin(manager)
    may_begin.append(source.compaction.may_begin)
    manager.moves.cancel("orders", 0)
    may_begin.append(source.compaction.may_begin)
    assert may_begin == [True, False, True]
    move = await begin(manager)
    log = await finish(manager, move)
    assert log.compaction.may_begin


async def test_a_cancelled_move_leaves_the_log_where_it_was() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    move = await begin(manager)
    await copy(move, steps=2)
    assert manager.moves.cancel("orders", 0)
    assert not manager.moves.cancel("orders", 0)
    assert manager.get("orders", 0) is source
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [name.split("-")[-1] for name in folders(files, "/b")] == ["delete"]
    log = await finish(manager, await begin(manager))
    assert records(log) == ALL


async def test_a_deleted_topic_takes_its_copy_along() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    await begin(manager)
    manager.delete("orders", 0)
    for _ in range(3):
        await asyncio.sleep(0)
    assert manager.moves.under_way == {}
    assert [n.split("-")[-1] for d in ("/a", "/b") for n in folders(files, d)] == ["delete", "delete"]


@pytest.mark.parametrize("clean", [True, False])
async def test_a_stop_in_the_middle_is_gone_on_from(clean: bool) -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    await copy(await begin(manager), steps=2)
    if clean:
        await manager.close()
    files = files.killed()
    files.calls.clear()

    manager = await two_dirs(files)
    move = manager.moves.under_way["orders", 0]
    assert 0 < move.future.state.log_end_offset < 12
    assert not move.source.compaction.may_begin
    produce(move.source, 7, 12, b"after", epoch=3)
    log = await finish(manager, move)
    assert records(log) == [*ALL, (12, b"after")]
    assert produce(log, 7, 12, epoch=3).duplicate


async def test_a_copy_that_kept_what_the_source_lost_in_a_power_cut_forgets_it() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    source.flusher.flush()
    produce(source, 7, 12, b"lost", epoch=2)
    move = await begin(manager)
    await copy(move)
    move.future.flusher.flush()
    manager = await two_dirs(files.power_cut())
    move = manager.moves.under_way["orders", 0]
    assert (move.source.state.log_end_offset, move.future.state.log_end_offset, move.divergence()) == (
        12,
        13,
        12,
    )
    produce(move.source, 7, 12, b"another", epoch=3)
    log = await finish(manager, move)
    assert records(log) == [*ALL, (12, b"another")]


async def test_a_source_that_is_truncated_takes_the_copy_along() -> None:
    manager = await two_dirs(MemoryFiles())
    source = orders(manager)
    move = await begin(manager)
    await copy(move)
    source.trimmer.truncate_to(6)
    produce(source, 8, 0, b"x", epoch=5)
    produce(source, 8, 1, b"y", epoch=5)
    log = await finish(manager, move)
    assert records(log) == [*ALL[:6], (6, b"x"), (7, b"y")]


async def test_damage_is_not_copied_and_does_not_vanish() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    path = f"{source.state.segments[0].path}.log"
    data = files.inodes[path].data
    data[len(data) // 2] ^= 1
    manager = await two_dirs(files.killed())
    move = await begin(manager)
    with pytest.raises(KafkaError) as refused:
        await copy(move)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert move.lag > 0


async def test_an_offset_spoilt_on_the_disk_is_not_copied_as_if_it_were_right() -> None:
    """No checksum covers it; a copy would make the wrong offset a right one."""
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    await manager.close()
    data = files.inodes[f"{source.state.segments[0].path}.log"].data
    second = next(iter(list(iter_batches(bytes(data)))[1:2]))[0]
    data[second + 7] ^= 4
    manager = await two_dirs(files)
    move = await begin(manager)
    with pytest.raises(KafkaError) as refused:
        await copy(move)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert move.future.state.log_end_offset == 1


# --- disks that fail --------------------------------------------------------------------------------------


async def test_a_target_that_is_full_for_a_while_delays_only_the_move() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    move = await begin(manager)
    files.fail("pwrite", errno.ENOSPC, path="/b/")
    with pytest.raises(KafkaError) as refused:
        await copy(move)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert append(source, b"goes on", epoch=2).first_offset == 12
    assert records(await finish(manager, move)) == [*ALL, (12, b"goes on")]


async def test_a_target_that_breaks_ends_the_move_and_leaves_the_log_in_service() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    move = await begin(manager)
    files.fail("pwrite", errno.EIO, path="/b/")
    with pytest.raises(KafkaError):
        await copy(move)
    await asyncio.sleep(0)
    assert (manager.moves.under_way, source.offline) == ({}, None)
    assert source.compaction.may_begin
    assert append(source, b"goes on", epoch=2).first_offset == 12
    with pytest.raises(KafkaError) as refused:
        await begin(manager)
    assert refused.value.message == ("Can not create log for orders-0 because log directories /b are offline")


async def test_a_source_that_breaks_keeps_its_copy_for_the_next_start() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    move = await begin(manager)
    await copy(move, steps=2)
    files.fail("pwrite", errno.EIO, path="/a/")
    with pytest.raises(KafkaError):
        append(move.source, b"x", epoch=2)
    await manager.close()

    files = files.killed()
    files.fail("read_file", errno.EIO, path="/a/", times=-1)
    offline = await two_dirs(files, metadata_dir="/meta")
    assert (offline.get("orders", 0), offline.moves.under_way) == (None, {})
    assert folders(files, "/b")[0].endswith("-future"), "the source may come back"
    files.heal()
    await offline.close()
    manager = await two_dirs(files)
    assert records(await finish(manager, manager.moves.under_way["orders", 0])) == ALL


async def test_a_name_that_cannot_be_changed_leaves_the_source_in_place() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    source = orders(manager)
    move = await begin(manager)
    await copy(move)
    files.fail("rename", errno.EROFS, path="-future")
    with pytest.raises(KafkaError) as refused:
        manager.moves.swap(move)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get("orders", 0) is source
    assert append(source, b"more", epoch=2).first_offset == 12
    assert records(await finish(manager, move)) == [*ALL, (12, b"more")]


async def test_a_target_that_breaks_in_the_last_step_leaves_no_shorter_log_to_be_served() -> None:
    """What was acknowledged after the swap is on the broken disk; the old folder lacks it."""
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    move = await begin(manager)
    await copy(move)
    manager.moves.swap(move)
    append(move.future, b"acknowledged", epoch=2)
    files.fail("sync", errno.EIO, path="/b/")
    await manager.moves.clear_up(move)
    assert folders(files, "/a")[0].endswith("-stray")
    again = await two_dirs(files.killed())
    assert records(log_of_orders(again)) == [*ALL, (12, b"acknowledged")]


async def test_the_only_folder_there_is_of_a_partition_is_served_whatever_its_name() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    await copy(await begin(manager))
    files = files.killed()
    files.rename("/a/orders-0", "/elsewhere")
    again = await two_dirs(files)
    log = again.create("orders", 0, TOPIC_ID, SMALL, again.dirs.of_partitions[0].directory_id, is_new=False)
    assert (log.directory, records(log), folders(files, "/b")) == ("/b/orders-0", ALL, ["orders-0"])


async def half_a_copy_without_its_source(files: MemoryFiles) -> tuple[LogManager, bytes]:
    """A start without /a, where the partition is, half of which had been copied to /b; the id of /a."""
    manager = await two_dirs(files)
    directory_id = manager.dirs.of_partitions[0].directory_id
    assert directory_id is not None
    orders(manager)
    await copy(await begin(manager), steps=2)
    await manager.close()
    return await Broker(files, "/b").start(), directory_id


async def test_half_a_copy_is_not_served_while_the_directory_of_the_whole_log_is_away() -> None:
    files = MemoryFiles()
    manager, directory_id = await half_a_copy_without_its_source(files)

    with pytest.raises(KafkaError) as refused:
        manager.create("orders", 0, TOPIC_ID, SMALL, directory_id, is_new=False)

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert folders(files, "/b")[0].endswith("-future")
    await manager.close()
    again = await two_dirs(files)
    assert records(await finish(again, again.moves.under_way["orders", 0])) == ALL


async def test_half_a_copy_goes_with_its_topic() -> None:
    files = MemoryFiles()
    manager, _ = await half_a_copy_without_its_source(files)
    manager.delete("orders", 0)
    await manager.close()
    assert [name.split("-")[-1] for name in folders(files, "/b")] == ["delete"]

    files = MemoryFiles()
    manager, _ = await half_a_copy_without_its_source(files)
    manager.set_strays_aside(lambda log: False)
    assert [name.split("-")[-1] for name in folders(files, "/b")] == ["stray"]
    await manager.close()


async def test_two_folders_of_one_name_that_no_move_explains_are_refused() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    manager.logs.clear()
    log = manager.create("orders", 0, OTHER_ID, SMALL, manager.dirs.of_partitions[1].directory_id)
    append(log, b"another topic's")
    with pytest.raises(LogDirError, match="/b/orders-0 and /a/orders-0 are the same partition"):
        await two_dirs(files.killed())


async def test_of_two_folders_that_a_swap_has_left_the_one_that_reaches_further_wins() -> None:
    """Apache Kafka does not start on them."""
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    move = await begin(manager)
    await copy(move)
    manager.moves.swap(move)
    append(move.future, b"after", epoch=2)
    assert folders(files, "/a") == folders(files, "/b") == ["orders-0"]
    disk = files.killed()
    again = await two_dirs(disk)
    assert log_of_orders(again).directory == "/b/orders-0"
    assert records(log_of_orders(again)) == [*ALL, (12, b"after")]
    await again.close()
    assert [name[-7:] for name in folders(disk, "/a")] == ["-delete"]


async def test_if_that_one_is_damaged_the_other_is_kept() -> None:
    files = MemoryFiles()
    manager = await two_dirs(files)
    orders(manager)
    move = await begin(manager)
    await copy(move)
    manager.moves.swap(move)
    append(move.future, b"after", epoch=2)
    data = files.inodes["/b/orders-0/00000000000000000000.log"].data
    data[len(data) // 2] ^= 1
    disk = files.killed()
    again = await two_dirs(disk)
    assert log_of_orders(again).directory == "/b/orders-0"
    assert [name[-6:] for name in folders(disk, "/a")] == ["-stray"]


# --- a crash before every disk operation ----------------------------------------------------------


class Recorder(MemoryFiles):
    """Keeps states that the disks may be in before each change, with what had been acknowledged by then."""

    def __init__(self, dice: random.Random, states_each: int) -> None:
        super().__init__()
        self._dice = dice
        self._states_each = states_each
        self.is_recording = False
        self.written: list[bytes] = []
        #: What was acknowledged: in the page cache, and on the disk.
        self.acknowledged = self.confirmed = 0
        self.states: list[tuple[str, MemoryFiles, int]] = []

    def _enter(self, operation: str, path: str) -> None:
        super()._enter(operation, path)
        if self.is_recording and operation not in ("pread", "read_file"):
            moment = f"{len(self.states)}: {operation} {path}"
            self.states.append((f"kill before {moment}", self.killed(), self.acknowledged))
            for _ in range(self._states_each):
                disk = self.power_cut(self._dice)
                self.states.append((f"power cut before {moment}", disk, self.confirmed))


async def live(files: Recorder, *, flush_each: bool) -> None:
    """Move a partition while it is written, and back again."""
    broker = Broker(files, "/a", "/b")
    manager = await broker.start()
    first = manager.dirs.of_partitions[0].directory_id
    log = manager.create(
        "orders", 0, TOPIC_ID, LogConfig(segment_bytes=1500, file_delete_delay_ms=1000), first
    )

    def write(count: int) -> None:
        for _ in range(count):
            number = len(files.written)
            value = b"%d " % number * 40
            files.written.append(value)
            log = log_of_orders(manager)
            append(log, value, epoch=number // 12, producer_id=7, producer_epoch=0, base_sequence=number)
            files.acknowledged = number + 1
            if flush_each:
                files.confirmed = log.flusher.flush()

    write(10)
    log.flusher.flush()
    files.is_recording = True
    for to in ("/b", "/a"):
        move = await begin(manager, to)
        while move.lag:
            await copy(move, steps=2)
            if len(files.written) % 5:
                write(1)
        move.future.flusher.flush()
        write(1)
        assert move.close_gap(STEP_BYTES)
        manager.moves.swap(move)
        clearing = asyncio.ensure_future(manager.moves.clear_up(move))
        for _ in range(8 if to == "/a" else 0):
            await asyncio.sleep(0)
        write(1)
        await clearing
        write(2)
        await manager.writes.checkpoint_recovery_points()
        await broker.pass_time(3)
    files.is_recording = False


async def check(disk: MemoryFiles, acknowledged: int, written: list[bytes]) -> str:
    """Every record is there once, in one place, and the log goes on, moved or still to be moved."""
    manager = await two_dirs(disk)
    log = log_of_orders(manager)
    damaged = [damage for segment in log.state.segments for damage in segment.trust.damages]
    if damaged:  # by a power cut, past what was on the disk
        assert min(damage.first_offset for damage in damaged) >= acknowledged
        return "damaged"
    found = records(log)
    assert found == list(enumerate(written[: len(found)])), "lost in the middle, doubled, or out of order"
    assert len(found) >= acknowledged
    for _ in range(3):
        await asyncio.sleep(0)
    assert [n for d in ("/a", "/b") for n in folders(disk, d) if n == "orders-0"] == ["orders-0"]
    went_on = "whole"
    if move := manager.moves.under_way.get(("orders", 0)):
        went_on = "moved on"
        log = await finish(manager, move)
        assert records(log) == found
    append(log, b"goes on", epoch=50)
    assert records(log) == [*found, (len(found), b"goes on")]
    again = log_of_orders(await two_dirs(disk.killed()))
    assert records(again) == [*found, (len(found), b"goes on")]
    return went_on


async def check_all(files: Recorder) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    for moment, disk, acknowledged in files.states:
        try:
            outcome = await check(disk, acknowledged, files.written)
        except BaseException as error:
            error.add_note(moment)
            raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


@pytest.mark.parametrize("flush_each", [True, False], ids=["fsync", "replicated"])
async def test_a_crash_before_any_disk_operation_of_a_move_loses_and_doubles_nothing(
    flush_each: bool,
) -> None:
    files = Recorder(random.Random(1), states_each=2)
    await live(files, flush_each=flush_each)
    outcomes = await check_all(files)
    assert sum(outcomes.values()) > 400
    assert min(outcomes["whole"], outcomes["moved on"]) > 100
    assert outcomes.get("damaged", 0) < (1 if flush_each else 20)


# --- planted bugs ---------------------------------------------------------------------------------


def the_shorter_folder_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_moves, "reach", lambda log: -log.state.log_end_offset)


def the_old_folder_goes_before_the_new_one_is_on_the_disk(patch: pytest.MonkeyPatch) -> None:
    init = LogMoves.__init__
    folders_of: dict[LogMoves, LogFolders] = {}

    def noting(
        moves: LogMoves, files: Any, dirs: Any, registry: Any, folders: LogFolders, *others: Any
    ) -> None:
        init(moves, files, dirs, registry, folders, *others)
        folders_of[moves] = folders

    async def clear_up(moves: LogMoves, move: LogMove) -> None:
        folders_of[moves].remove(move.source)

    patch.setattr(LogMoves, "__init__", noting)
    patch.setattr(LogMoves, "clear_up", clear_up)


def the_copy_is_not_compared_with_the_source(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogMove, "divergence", lambda move: None)


@pytest.mark.parametrize(
    "bug",
    [
        the_shorter_folder_wins,
        the_old_folder_goes_before_the_new_one_is_on_the_disk,
        the_copy_is_not_compared_with_the_source,
    ],
)
async def test_a_bug_in_the_move_is_caught(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    files = Recorder(random.Random(2), states_each=2)
    await live(files, flush_each=True)
    with pytest.raises((AssertionError, KafkaError, LogDirError)):
        await check_all(files)
