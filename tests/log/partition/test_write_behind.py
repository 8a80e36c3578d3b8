"""Syncing in the background, so that a stop has little left to do and a crash little to scan."""

from __future__ import annotations

import asyncio
import errno

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import DiskEvents, Environment
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, TOPIC_ID, append, reopened, values
from tests.log.manager.test_log_manager import Broker

BATCH_BYTES = 170


def test_a_segment_is_synced_after_every_portion() -> None:
    files = MemoryFiles()
    environment = Environment(files, write_behind_bytes=3 * BATCH_BYTES)
    log = create_log(environment, LogIdentity(FOLDER, "orders", 0, TOPIC_ID), LogConfig())
    recovery_points = []
    for _ in range(8):
        append(log, bytes(100))
        recovery_points.append(log.state.recovery_point)
    assert log.state.size_bytes == 8 * BATCH_BYTES
    assert recovery_points == [0, 0, 0, 3, 3, 3, 6, 6]
    after = reopened(files.power_cut(), recovery_point=log.state.recovery_point)
    assert values(after) == [bytes(100)] * 7


def test_a_log_that_was_there_is_synced_only_for_what_is_new() -> None:
    files = MemoryFiles()
    log = create_log(Environment(files), LogIdentity(FOLDER, "orders", 0, TOPIC_ID), LogConfig())
    for _ in range(8):
        append(log, bytes(100))
    log.close()
    log = reopened(files, clean=True)
    files.calls.clear()
    append(log, b"one more")
    assert ("sync", f"{FOLDER}/00000000000000000000.log") not in files.calls


def test_a_sync_in_the_background_that_fails_takes_the_directory_out_of_service() -> None:
    files = MemoryFiles()
    failures: list[OSError] = []
    environment = Environment(
        files, events=DiskEvents(on_failure=failures.append), write_behind_bytes=BATCH_BYTES
    )
    log = create_log(environment, LogIdentity(FOLDER, "orders", 0, TOPIC_ID), LogConfig())
    files.fail("sync", errno.EIO, path=".log")
    append(log, bytes(100))
    append(log, bytes(100))
    assert [failure.errno for failure in failures] == [errno.EIO]


async def test_one_log_is_synced_at_a_time_so_that_other_file_work_finds_a_thread() -> None:
    files = MemoryFiles()
    manager = await Broker(files).start()
    environment = manager.dirs.of_partitions[0].environment
    assert environment is not None
    done: list[int] = []
    environment.run_in_turn(lambda: done.append(1))
    environment.run_in_turn(lambda: done.append(1 // 0))
    environment.run_in_turn(lambda: done.append(3))
    assert manager.file_jobs == 1
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == [1, 3]
    environment.run_in_turn(lambda: done.append(4))
    await manager.close()
    assert done == [1, 3, 4]
