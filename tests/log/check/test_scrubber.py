"""The scrub: closed segments are read from time to time; what has gone bad is fenced before it is needed."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.log.check.scrub_process import ScrubProcess
from pykafka_broker.log.check.scrubber import (
    ScrubAborted,
    Scrubbed,
    ScrubJob,
    ScrubSettings,
    ThreadScrubber,
    apply_findings,
    job_for,
)
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.manager.settings import LogSettings, LogWorkers
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.testing.memory_files import MemoryFile, MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, append, batch
from tests.log.manager.test_log_manager import Broker

SETTINGS = LogConfig(segment_bytes=500, retention_ms=-1)
FOLDER = "/data/orders-0"
UNLIMITED = 1e12


async def stopped(*topics: str) -> MemoryFiles:
    """Logs of several closed segments, after a clean stop."""
    files = MemoryFiles()
    manager = await Broker(files, config_for=lambda topic: SETTINGS).start()
    for topic in topics or ("orders",):
        log = manager.create(topic, 0, TOPIC_ID, SETTINGS)
        for number in range(24):
            append(log, b"%d" % number)
    await manager.close()
    return files


def flip(files: MemoryFiles, log: PartitionLog, number: int, position: int) -> None:
    files.inodes[log.state.segments[number].path + ".log"].data[position] ^= 1


async def test_a_minute_after_a_start_what_was_not_yet_read_is_checked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = await stopped()
    broker = Broker(files, config_for=lambda topic: SETTINGS)
    log = (await broker.start()).get("orders", 0)
    assert log is not None
    flip(files, log, 1, 100)
    flip(files, log, 2, 7)
    log.reader.plan_read(0, 1).read()
    await broker.pass_time(59)
    assert [bool(segment.trust.unverified_end) for segment in log.state.segments[:-1]] == [False] + [True] * (
        len(log.state.segments) - 2
    )
    with caplog.at_level(logging.INFO):
        await broker.pass_time(4)

    assert [segment.trust.unverified_end for segment in log.state.segments[:-1]] == [0] * (
        len(log.state.segments) - 1
    )
    assert [len(segment.trust.damages) for segment in log.state.segments[:4]] == [0, 1, 1, 0]
    assert f"Scrubbed {len(log.state.segments) - 2} closed segments, 2 of them damaged" in caplog.text
    assert [name for name in sorted(files.inodes) if name.endswith(".damaged")] == [
        f"{segment.path}.damaged" for segment in log.state.segments[1:3]
    ]


async def test_once_a_week_everything_is_read_again_also_what_this_process_wrote() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, SETTINGS)
    for number in range(24):
        append(log, b"%d" % number)
    await broker.pass_time(62)
    flip(files, log, 1, 100)
    broker.clock.advance(7 * 86_400_000 - 10_000)
    await broker.pass_time(1)
    assert list(log.state.segments[1].trust.damages) == []
    await broker.pass_time(12)
    assert len(log.state.segments[1].trust.damages) == 1
    await manager.close()


class Odd(ThreadScrubber):
    """Fails at one log in a way that nothing expects."""

    def scrub(self, job: ScrubJob, bytes_per_second: float) -> Scrubbed:
        if job.directory.endswith("odd-0"):
            raise ValueError("odd")
        return super().scrub(job, bytes_per_second)


async def test_a_log_that_fails_the_scrub_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    files = await stopped("odd", "orders")
    broker = Broker(
        files,
        config_for=lambda topic: SETTINGS,
        workers=LogWorkers(new_scrubber=lambda: Odd(files)),
    )
    manager = await broker.start()
    await broker.pass_time(65)
    assert [r.getMessage() for r in caplog.records if r.exc_info] == ["odd-0 is not scrubbed"]
    odd, orders = manager.get("odd", 0), manager.get("orders", 0)
    assert odd is not None and odd.state.segments[0].trust.unverified_end
    assert orders is not None and not orders.state.segments[0].trust.unverified_end
    await manager.close()


class Rated(ThreadScrubber):
    """Keeps the rates it was given."""

    rates: list[float]

    def scrub(self, job: ScrubJob, bytes_per_second: float) -> Scrubbed:
        self.rates.append(bytes_per_second)
        return super().scrub(job, bytes_per_second)


async def test_interval_and_rate_are_settings_that_may_change_at_any_time() -> None:
    files = await stopped()
    worker = Rated(files)
    rates = worker.rates = []
    broker = Broker(
        files,
        config_for=lambda topic: SETTINGS,
        settings=LogSettings(scrub=ScrubSettings(interval_ms=-1, bytes_per_second=5)),
        workers=LogWorkers(new_scrubber=lambda: worker),
    )
    scrubber = (await broker.start()).scrubber
    await broker.pass_time(200)
    assert rates == [], "never"
    scrubber.settings = ScrubSettings(interval_ms=20_000, bytes_per_second=7)
    await broker.pass_time(5)
    assert rates == [7]
    scrubber.settings = ScrubSettings(interval_ms=20_000, bytes_per_second=8)
    await broker.pass_time(42)
    assert rates == [7, 8, 8]
    scrubber.settings = ScrubSettings(interval_ms=-1)
    await broker.pass_time(200)
    assert rates == [7, 8, 8]
    await broker.manager.close()


async def test_an_interval_of_less_than_a_minute_is_that_of_the_first_round_too() -> None:
    files = await stopped()
    broker = Broker(
        files,
        config_for=lambda topic: SETTINGS,
        settings=LogSettings(scrub=ScrubSettings(interval_ms=10_000)),
    )
    log = (await broker.start()).get("orders", 0)
    assert log is not None
    flip(files, log, 1, 100)
    await broker.pass_time(9)
    assert list(log.state.segments[1].trust.damages) == []
    await broker.pass_time(4)
    assert len(log.state.segments[1].trust.damages) == 1
    await broker.manager.close()


async def test_what_was_not_in_the_page_cache_does_not_stay_there() -> None:
    files = await stopped()
    manager = await Broker(files, config_for=lambda topic: SETTINGS).start()
    log = manager.get("orders", 0)
    assert log is not None
    job = job_for(log, only_unchecked=True)
    assert job is not None
    assert ThreadScrubber(files).scrub(job, UNLIMITED) == Scrubbed([base for base, _, _ in job.segments], [])
    assert files.forgotten == []
    files.is_cached = False
    ThreadScrubber(files).scrub(job, UNLIMITED)
    assert files.forgotten == [(f"{FOLDER}/{base:020d}.log", 0, size) for base, size, _ in job.segments]


async def test_segments_that_are_gone_by_then_are_left_out_and_those_replaced_are_not_judged() -> None:
    files = await stopped()
    broker = Broker(files, config_for=lambda topic: SETTINGS)
    log = (await broker.start()).get("orders", 0)
    assert log is not None
    job = job_for(log, only_unchecked=True)
    assert job is not None
    files.remove(log.state.segments[0].path + ".log")
    assert ThreadScrubber(files).scrub(job, UNLIMITED).sound == [base for base, _, _ in job.segments[1:]]


class WhileLooking(MemoryFiles):
    """Retention removes a segment when it is about to be opened."""

    log: PartitionLog

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> MemoryFile:
        if not create and path == f"{FOLDER}/{0:020d}.log" and path in self.inodes:
            self.log.state.segments = self.log.state.segments[1:]
            del self.inodes[path]
        return super().open(path, create=create, writable=writable)


async def test_a_segment_may_be_deleted_while_its_damage_is_examined() -> None:
    files = WhileLooking()
    files.inodes, files.directories = (before := await stopped()).inodes, before.directories
    log = (await Broker(files, config_for=lambda topic: SETTINGS).start()).get("orders", 0)
    assert log is not None
    files.log = log
    job = job_for(log, only_unchecked=True)
    assert job is not None
    log.reader.release_files()
    apply_findings(log, job, Scrubbed([], [0]))
    assert log.state.segments[0].base_offset > 0


# --- in a process ---------------------------------------------------------------------------------


@pytest.fixture
def real_log(tmp_path: Path) -> Iterator[PartitionLog]:
    files = OsFileSystem()
    log = create_log(
        Environment(files), LogIdentity(str(tmp_path / "orders-0"), "orders", 0, TOPIC_ID), SETTINGS
    )
    for number in range(24):
        log.writer.append(batch(b"%d" % number), leader_epoch=number // 10, now_ms=NOW)
    yield log
    log.close(clean=False)


def test_a_process_says_which_segments_are_sound(real_log: PartitionLog) -> None:
    path = Path(real_log.state.segments[1].path + ".log")
    data = bytearray(path.read_bytes())
    data[15] ^= 1
    path.write_bytes(data)
    job = job_for(real_log, only_unchecked=False)
    assert job is not None
    bases = [base for base, _, _ in job.segments]
    process = ScrubProcess()
    assert process.scrub(job, UNLIMITED) == ([bases[0], *bases[2:]], [bases[1]])

    started = process.worker.started()
    assert started is not None
    started.kill()
    started.wait()
    with pytest.raises(OSError, match="has died"):
        process.scrub(job, UNLIMITED)
    assert process.scrub(job, UNLIMITED).odd == [bases[1]]
    process.close()
    with pytest.raises(ScrubAborted):
        process.scrub(job, UNLIMITED)


async def test_a_stop_ends_a_slow_scrub_at_once(real_log: PartitionLog) -> None:
    job = job_for(real_log, only_unchecked=False)
    assert job is not None
    process = ScrubProcess()
    process.worker.started()
    slow = asyncio.get_running_loop().run_in_executor(None, process.scrub, job, 1.0)
    # At this speed it would take an hour.
    closing = threading.Timer(0.3, process.close)
    closing.start()
    with pytest.raises(ScrubAborted):
        await slow
    closing.join()
