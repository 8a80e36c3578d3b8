"""Looking through a folder while a broker changes it: the outcome is that of a sound log, at any moment."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.log.check.findings import CheckResult
from pykafka_broker.log.check.partition_check import check_partition, open_segments
from pykafka_broker.log.disk.files import Entry, OsFileSystem
from pykafka_broker.log.segment.header_walk import walk_headers
from pykafka_broker.testing.memory_files import Inode, MemoryFile, MemoryFiles
from tests.log.cleaner.test_cleaner import COMPACT, a_broker, a_log, cleaned, fill

FOLDER = "/data/orders-0"
LOOKS = 5

State = dict[str, Inode]


class ChangingFiles(MemoryFiles):
    """What another process sees of a folder whose next states are these: with every look at a name, some
    steps have gone by. Files that are open stay what they were.
    """

    def __init__(self, states: list[State], first: int, steps: int) -> None:
        super().__init__()
        self.directories = {"/", "/data", FOLDER}
        self._states = states
        self._at = first
        self._steps = steps

    def _look(self) -> None:
        self.inodes = self._states[min(self._at, len(self._states) - 1)]
        self._at += self._steps

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> MemoryFile:
        self._look()
        return super().open(path, create=create, writable=writable)

    def entries(self, directory: str, *, sizes_of: tuple[str, ...] = ()) -> list[Entry]:
        self._look()
        return super().entries(directory, sizes_of=sizes_of)

    def read_file(self, path: str) -> bytes:
        self._look()
        return super().read_file(path)


async def states_under_constant_cleaning() -> list[State]:
    """The folder before every disk operation of a broker that writes, compacts and deletes."""
    files = MemoryFiles()
    config: dict[str, Any] = {**COMPACT, "file_delete_delay_ms": 0}
    broker = await a_broker(files, backoff_ms=0)
    log = a_log(broker.manager, **config)
    fill(log, 60)
    states: list[State] = []
    files.meanwhile = lambda operation, path: states.append(dict(files.inodes))
    for number in range(6):
        fill(log, 30, keys=11, start=30 * number)
        await cleaned(broker)
    files.meanwhile = None
    await broker.manager.close()
    return states


def looked_through(files: MemoryFiles) -> CheckResult:
    for _ in range(LOOKS - 1):
        try:
            return check_partition(files, FOLDER, is_in_use=True)
        except FileNotFoundError as error:
            assert "compacted meanwhile" in str(error), "a name that has gone is no reason to look again"
    return check_partition(files, FOLDER, is_in_use=True, is_last_look=True)


async def test_a_folder_that_is_cleaned_all_the_time_is_found_sound() -> None:
    states = await states_under_constant_cleaning()
    assert len(states) > 200
    for steps in (1, 5, 40):
        for first in range(0, len(states), 7):
            assert looked_through(ChangingFiles(states, first, steps)).findings == []


async def test_segments_that_a_broker_removes_are_read_as_they_were_when_they_were_opened() -> None:
    states = await states_under_constant_cleaning()
    dice = random.Random(11)
    for _ in range(100):
        files = ChangingFiles(states, dice.randrange(len(states)), dice.randrange(1, 30))
        offsets = [
            header.base_offset
            for segment in open_segments(files, FOLDER)
            for _, header in walk_headers(segment.file.pread, 0, segment.size)
        ]
        assert offsets


async def test_damage_in_a_segment_that_stays_is_found_while_others_are_replaced() -> None:
    states = await states_under_constant_cleaning()
    first = 0
    stays: list[str] = []
    while not stays:
        first += 1
        before, after = states[first], states[first + 20]
        logs = sorted(path for path in before if path.endswith(".log"))[:-1]
        stays = [path for path in logs if after.get(path) is before[path]]
        if len(stays) == len(logs):
            stays = []
    before[stays[0]].data[70] ^= 1
    found = looked_through(ChangingFiles(states[: first + 21], first, 3)).findings
    assert [finding.path for finding in found if finding.path.endswith(".log")] == [stays[0]]


def test_a_folder_that_has_gone_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_segments(OsFileSystem(), str(tmp_path / "orders-0"))
