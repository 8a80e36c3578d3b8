"""Every state a power cut may leave of a log's life, not only the one in which nothing unsynced survived.

A log is written, rolled, flushed, given new leader epochs, and closed. Before each of its disk operations
dice decide which unsynced pages and names the disk has kept, some times over; each state is opened. What must
hold:

* `fsync`: whatever a flush has confirmed is there, at its offset;
* `replicated`: what is served is what was written, at its offset; from the start to the first refusal it is a
  prefix; nothing that was never written appears; the log takes new records.

A disk layer that drops one kind of sync must be noticed: the last tests plant such bugs.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.memory_files import MemoryFile, MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, end_transaction, produce, served
from tests.log.manager.test_log_manager import Broker

pytestmark = pytest.mark.acknowledged

BATCHES = 24
SETTINGS = LogConfig(segment_bytes=2500)


class Recorder(MemoryFiles):
    """Keeps some of the states the disk may be in before each change, with what was confirmed by then."""

    def __init__(self, seed: int, states_each: int) -> None:
        super().__init__()
        self._dice = random.Random(seed)
        self._states_each = states_each
        #: Values by offset: written, or being written; and up to which offset a flush has confirmed them.
        self.written: list[bytes] = []
        self.confirmed = 0
        self.is_recording = False
        self.states: list[tuple[str, MemoryFiles, int, int]] = []

    def _enter(self, operation: str, path: str) -> None:
        super()._enter(operation, path)
        if self.is_recording and operation not in ("pread", "read_file"):
            self.keep_states(f"{operation} {path}")

    def keep_states(self, moment: str) -> None:
        for _ in range(self._states_each):
            disk = self.power_cut(self._dice)
            self.states.append((moment, disk, self.confirmed, len(self.written)))


async def live(files: Recorder, *, flush_each: bool) -> None:
    broker = Broker(files)
    manager = await broker.start()
    files.is_recording = True
    log = manager.create("orders", 0, TOPIC_ID, SETTINGS)
    for number in range(BATCHES):
        value = b"%d" % number + bytes([number]) * 700
        files.written.append(value)
        batch = build_batch([(NOW + number, b"k", value, ())])
        log.writer.append(bytearray(batch), leader_epoch=number // 10, now_ms=NOW)
        log.state.advance_high_watermark(log.state.log_end_offset)
        if flush_each:
            files.confirmed = log.flusher.flush()
        for _ in range(3):
            await asyncio.sleep(0)
        files.confirmed = max(files.confirmed, log.state.recovery_point)
        if number % 8 == 7:
            await manager.writes.checkpoint_recovery_points()
            await manager.writes.checkpoint_high_watermarks()
    await manager.close()
    files.confirmed = BATCHES
    files.keep_states("the end")
    files.is_recording = False


async def opened(disk: MemoryFiles) -> tuple[LogManager, PartitionLog | None]:
    manager = await Broker(disk).start()
    log = manager.get("orders", 0)
    if log is not None:
        log.state.advance_high_watermark(log.state.log_end_offset)
    return manager, log


async def check(disk: MemoryFiles, confirmed: int, written: list[bytes]) -> None:
    _, log = await opened(disk)
    if log is None:
        assert confirmed == 0
        return
    records, refused = served(log)
    found = {offset: record.value for offset, record in records.items()}
    assert all(written[offset] == value for offset, value in found.items())
    assert set(range(confirmed)) <= found.keys()
    assert log.state.log_end_offset <= len(written)
    first_refused = min(refused, default=log.state.log_end_offset)
    assert list(range(first_refused)) == [offset for offset in sorted(found) if offset < first_refused]
    end = log.state.log_end_offset
    batch = build_batch([(NOW, b"k", b"goes on", ())])
    assert log.writer.append(bytearray(batch), leader_epoch=9, now_ms=NOW).first_offset == end


async def check_all(files: Recorder) -> int:
    for moment, disk, confirmed, written in files.states:
        try:
            await check(disk, confirmed, files.written[:written])
        except BaseException as error:
            error.add_note(f"power cut before {moment}")
            raise
    return len(files.states)


@pytest.mark.parametrize("flush_each", [True, False], ids=["fsync", "replicated"])
async def test_every_state_recovers_and_keeps_what_was_promised(flush_each: bool) -> None:
    files = Recorder(seed=1, states_each=4)
    await live(files, flush_each=flush_each)
    assert await check_all(files) > 400


# --- transactions ---------------------------------------------------------------------------------


async def live_with_transactions(files: Recorder) -> list[AbortedTxn]:
    """Producers whose transactions are aborted and committed by turns, each end flushed."""
    manager = await Broker(files).start()
    files.is_recording = True
    log = manager.create("orders", 0, TOPIC_ID, SETTINGS)
    aborted: list[AbortedTxn] = []
    for number in range(BATCHES):
        value = b"%d" % number + bytes([number]) * 300
        files.written += [value, b""]
        first = produce(log, number % 5, number // 5, value, transactional=True)
        files.confirmed = log.flusher.flush()
        end_transaction(log, number % 5, commit=number % 3 == 0)
        log.state.advance_high_watermark(log.state.log_end_offset)
        if number % 3:
            aborted.append(AbortedTxn(number % 5, first.first_offset, first.last_offset + 1, 0))
        files.confirmed = log.flusher.flush()
        await asyncio.sleep(0)
        if number % 6 == 5:
            await manager.writes.checkpoint_recovery_points()
    await manager.close()
    files.keep_states("the end")
    files.is_recording = False
    return aborted


async def test_aborted_transactions_are_known_in_every_state() -> None:
    files = Recorder(seed=3, states_each=4)
    aborted = await live_with_transactions(files)
    for moment, disk, confirmed, _ in files.states:
        _, log = await opened(disk)
        if log is None:
            assert confirmed == 0
            continue
        assert log.state.log_end_offset >= confirmed
        known = [txn._replace(last_stable_offset=0) for s in log.state.segments for txn in s.aborted.entries]
        expected = [txn for txn in aborted if txn.last_offset < log.state.log_end_offset]
        assert known == expected, f"power cut before {moment}"
    assert len(files.states) > 400


# --- planted bugs ---------------------------------------------------------------------------------


def no_file_syncs(files: Recorder) -> None:
    original = files.open

    def forgetful(path: str, **how: bool) -> MemoryFile:
        file = original(path, **how)
        if path.endswith(".log"):
            file.sync = lambda: None  # type: ignore[method-assign]
        return file

    files.open = forgetful  # type: ignore[method-assign]


def no_folder_syncs(files: Recorder) -> None:
    original = files.sync_directory
    files.sync_directory = lambda path: original(path) if "orders" not in path else None  # type: ignore


def no_sync_of_the_log_directory(files: Recorder) -> None:
    original = files.sync_directory
    files.sync_directory = lambda path: original(path) if path != "/data" else None  # type: ignore


@pytest.mark.parametrize("bug", [no_file_syncs, no_folder_syncs, no_sync_of_the_log_directory])
async def test_a_disk_layer_that_drops_syncs_is_caught(bug: Callable[[Recorder], None]) -> None:
    files = Recorder(seed=2, states_each=2)
    bug(files)
    await live(files, flush_each=True)
    with pytest.raises(AssertionError):
        await check_all(files)
