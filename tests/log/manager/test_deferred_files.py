"""Files that appends wait for: one job makes those of many logs, and each append hears of its own."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.manager.deferred_files import DeferredFiles
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import TOPIC_ID, append

EPOCHS = "leader-epoch-checkpoint"


class Disks:
    """Runs jobs when they are let go, and keeps the directory of each."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.jobs: list[str] = []
        self.goes = asyncio.Event()
        self.goes.set()
        self.refuses: Exception | None = None
        self.deferred = DeferredFiles(self._run)

    async def _run(self, directory: str, job: Callable[[], Any]) -> Any:
        if self.refuses is not None:
            raise self.refuses
        self.jobs.append(directory)
        await self.goes.wait()
        return job()

    def log(self, partition: int, log_dir: str = "/a") -> PartitionLog:
        """An empty log that has a new leader epoch to write down."""
        identity = LogIdentity(f"{log_dir}/orders-{partition}", "orders", partition, TOPIC_ID)
        log = create_log(Environment(self.files), identity, LogConfig())
        log.epoch_file.begin(3)
        return log


def due(log: PartitionLog) -> NamesDue:
    return NamesDue(log.roller, None)


def have_files(logs: list[PartitionLog]) -> list[bool]:
    return [log.epoch_file.is_saved and not log.roller.makes_names for log in logs]


async def test_the_files_of_a_thousand_appends_are_made_by_one_job() -> None:
    disks = Disks()
    logs = [disks.log(number) for number in range(1_000)]

    errors = await disks.deferred.make_all([due(log) for log in logs])

    assert errors == [None] * 1_000
    assert all(have_files(logs))
    assert disks.jobs == ["/a"]


async def test_what_is_due_in_one_turn_goes_together_whoever_asks_and_each_directory_has_its_own_jobs() -> (
    None
):
    disks = Disks()
    logs = [disks.log(number, log_dir) for log_dir in ("/a", "/b") for number in range(3)]

    await asyncio.gather(*(disks.deferred.make(due(log)) for log in logs))

    assert all(have_files(logs))
    assert disks.jobs == ["/a", "/b"]


async def test_an_append_that_comes_while_its_file_is_made_waits_for_the_same() -> None:
    disks = Disks()
    disks.goes.clear()
    log = disks.log(0)
    first = asyncio.create_task(disks.deferred.make(due(log)))
    await settle()
    second = asyncio.create_task(disks.deferred.make(due(log)))
    await settle()
    assert (len(disks.deferred.under_way), log.roller.makes_names) == (1, True)

    first.cancel()  # the client went away
    disks.goes.set()
    await second

    assert (disks.jobs, have_files([log]), disks.deferred.under_way) == (["/a"], [True], [])


async def test_an_append_is_repeated_until_it_misses_no_file() -> None:
    disks = Disks()
    log = disks.log(0)
    outcomes: list[NamesDue | str] = [due(log), "written"]

    assert await disks.deferred.repeat(due(log), lambda: outcomes.pop(0)) == "written"

    assert (disks.jobs, have_files([log])) == (["/a", "/a"], [True])


async def test_an_append_is_repeated_if_the_log_is_truncated_while_its_segment_is_made() -> None:
    """Before, it was refused by an error of the program, and a follower stopped fetching."""
    disks = Disks()
    log = disks.log(0)
    for value in (b"a", b"b"):
        append(log, value, epoch=3)
    disks.goes.clear()
    repeated = disks.deferred.repeat(NamesDue(log.roller, 2), lambda: "repeated")
    await settle()
    log.trimmer.truncate_to(1)
    disks.goes.set()

    assert await repeated == "repeated"
    assert [segment.base_offset for segment in log.state.segments] == [0]


async def test_a_file_that_cannot_be_made_is_the_error_of_its_own_append_alone() -> None:
    disks = Disks()
    logs = [disks.log(number) for number in range(3)]
    disks.files.fail("rename", errno.ENOSPC, path=f"orders-1/{EPOCHS}")

    errors = await disks.deferred.make_all([due(log) for log in logs])

    assert [error and error.code for error in errors] == [None, ErrorCode.KAFKA_STORAGE_ERROR, None]
    assert have_files(logs) == [True, False, True]
    assert await disks.deferred.make_all([due(logs[1])]) == [None]


async def test_where_no_thread_takes_a_job_all_who_wait_hear_of_it_and_may_try_again() -> None:
    disks = Disks()
    logs = [disks.log(number) for number in range(2)]
    disks.refuses = RuntimeError("cannot schedule new futures after shutdown")

    outcomes = await asyncio.gather(*(disks.deferred.make(due(log)) for log in logs), return_exceptions=True)

    assert outcomes == [disks.refuses, disks.refuses]
    disks.refuses = None
    assert await disks.deferred.make_all([due(log) for log in logs]) == [None, None]
