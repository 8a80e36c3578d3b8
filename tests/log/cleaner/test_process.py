"""The process that cleans: real files, a real process, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.log.cleaner import work
from pykafka_broker.log.cleaner.process import CleaningProcess, encode_job
from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.disk.throttle import Throttle
from pykafka_broker.log.disk.worker_process import WorkerProcess
from pykafka_broker.log.partition.cleaning_job import CleanedSegment, CleaningAborted, DamagedSegment, Job
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.records.batch import build_batch, iter_batches, read_records
from tests.log.logs import NOW, TOPIC_ID

UNTHROTTLED = float("inf")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    config = LogConfig(
        segment_bytes=1000, cleanup_policy=frozenset({"compact"}), file_delete_delay_ms=LONG_MAX
    )
    log = create_log(
        Environment(OsFileSystem()), LogIdentity(str(tmp_path / "orders-0"), "orders", 0, TOPIC_ID), config
    )
    for number in range(40):
        data = build_batch([(NOW, b"%d" % (number % 3), b"%d" % number, ())])
        log.writer.append(bytearray(data), leader_epoch=0, now_ms=NOW)
    log.state.advance_high_watermark(log.state.log_end_offset)
    yield log
    log.close(clean=False)


def job_for(log: PartitionLog) -> Job:
    dirt = log.compaction.dirt(NOW)
    log.flusher.flush_closed()
    return log.compaction.job(dirt, NOW, key_map_bytes=1 << 20, key_map_load=0.9, io_buffer_bytes=1 << 18)


def clean(log: PartitionLog, process: CleaningProcess) -> int:
    return process.clean(job_for(log), UNTHROTTLED, log.compaction.swap_in)


def test_a_truncation_before_the_job_leaves_the_active_segment_out(log: PartitionLog) -> None:
    dirt = log.compaction.dirt(NOW)
    first, second, *_ = log.state.segments
    log.trimmer.truncate_to(second.base_offset + 1)

    job = log.compaction.job(dirt, NOW, key_map_bytes=1 << 20, key_map_load=0.9, io_buffer_bytes=1 << 18)

    assert [segment.base_offset for segment in job.segments] == [first.base_offset]


def test_a_process_cleans_log_after_log_and_what_it_wrote_is_put_in_place(log: PartitionLog) -> None:
    process = CleaningProcess()
    dirty = log.state.segments[-1].base_offset
    assert clean(log, process) == dirty
    log.compaction.adopt()
    data = log.reader.plan_read(0, 1 << 20).read()
    kept = [(r.offset, r.value) for at, _ in iter_batches(data) for r in read_records(data[at:])]
    assert kept == [(offset, b"%d" % offset) for offset in range(dirty - 3, dirty)]
    assert clean(log, process) == dirty
    process.close()
    with pytest.raises(CleaningAborted):
        clean(log, process)


def test_damage_and_a_broken_disk_are_told_as_in_a_thread(log: PartitionLog) -> None:
    process = CleaningProcess()
    path = Path(log.state.segments[0].path + ".log")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedSegment, match="segment 0 is damaged"):
        clean(log, process)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        clean(log, process)
    process.close()


def test_a_process_that_dies_is_an_error_and_the_next_job_starts_another(log: PartitionLog) -> None:
    process = CleaningProcess()

    started = process.worker.started()
    assert started is not None
    started.kill()
    started.wait()
    with pytest.raises(ChildProcessError, match="has died"):
        clean(log, process)
    assert clean(log, process) == log.state.segments[-1].base_offset
    process.close()


def test_what_a_process_did_not_expect_is_told_with_its_traceback(log: PartitionLog) -> None:
    process = CleaningProcess()
    without_segments = job_for(log)._replace(segments=[])
    with pytest.raises(RuntimeError, match=r"(?s)Traceback .*IndexError"):
        process.clean(without_segments, UNTHROTTLED, log.compaction.swap_in)
    process.close()


def test_a_part_of_a_header_at_the_end_of_a_segment_is_damage(log: PartitionLog) -> None:
    path = Path(log.state.segments[0].path + ".log")
    path.write_bytes(path.read_bytes() + bytes(10))
    job = job_for(log)
    first, *others = job.segments
    longer = job._replace(segments=[first._replace(size_bytes=first.size_bytes + 10), *others])
    with pytest.raises(DamagedSegment, match="half a record batch"):
        work.clean(OsFileSystem(), longer, lambda _: None, log.compaction.swap_in)


@pytest.mark.parametrize("how", ["overwritten", "removed"])
def test_a_cleaned_file_that_was_changed_or_removed_is_not_swapped_in(log: PartitionLog, how: str) -> None:
    process = CleaningProcess()
    before = [(segment.base_offset, segment.size) for segment in log.state.segments]

    def swap_in(cleaned: CleanedSegment) -> None:
        path = Path(log.directory) / f"{cleaned.base_offset:020d}.log.cleaned"
        path.write_bytes(path.read_bytes() + b"?") if how == "overwritten" else path.unlink()
        log.compaction.swap_in(cleaned)

    with pytest.raises(CleaningAborted):
        process.clean(job_for(log), UNTHROTTLED, swap_in)
    log.compaction.adopt()
    assert [(segment.base_offset, segment.size) for segment in log.state.segments] == before
    assert [Path(segment.path + ".log").stat().st_size for segment in log.state.segments] == [
        s for _, s in before
    ]
    process.close()


def test_a_process_whose_broker_was_killed_writes_nothing_more(log: PartitionLog) -> None:
    process = CleaningProcess()
    started = process.worker.started()
    assert started is not None
    bytes_per_second = 1
    assert started.stdin is not None
    started.stdin.write(json.dumps([encode_job(job_for(log)), bytes_per_second]) + "\n")
    started.stdin.close()  # as the kernel does for a broker that dies
    assert started.wait(30) == 0, "long before the job is done"
    assert list(Path(log.directory).glob("*.cleaned")) == []
    process.close()


def test_the_throttle_sleeps_when_there_were_too_many_bytes_for_the_time() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(1000, now_s=lambda: now[0], sleep=sleep)
    throttle.count(299)
    assert slept == []
    throttle.count(201)
    assert slept == [0.5]
    now[0] += 10
    throttle.count(5000)
    assert slept == [0.5]
    throttle.count(600)
    assert slept == [0.5, 0.6]
    unlimited = Throttle(UNTHROTTLED, now_s=lambda: now[0], sleep=sleep)
    unlimited.count(1 << 40)
    now[0] += 1
    unlimited.count(1 << 40)
    assert len(slept) == 2


def test_an_answer_that_the_death_of_the_process_cuts_short_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dies_speaking.py").write_text("print('[1]'); print('[2, ', end='', flush=True)")
    monkeypatch.syspath_prepend(tmp_path)

    assert list(WorkerProcess("dies_speaking").answers("a job")) == [[1]]


def test_a_segment_that_is_not_flushed_is_not_replaced(log: PartitionLog) -> None:
    process = CleaningProcess()
    before = [segment.base_offset for segment in log.state.segments]

    def swap_in(cleaned: CleanedSegment) -> None:
        log.state.segments[0].is_flushed = False
        log.compaction.swap_in(cleaned)

    with pytest.raises(IllegalState, match="cleaned before it was flushed"):
        process.clean(job_for(log), UNTHROTTLED, swap_in)
    log.compaction.adopt()
    assert [segment.base_offset for segment in log.state.segments] == before
    process.close()
