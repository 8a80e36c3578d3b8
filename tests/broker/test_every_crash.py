"""A broker killed, or cut from power, before every single disk operation of a whole life.

One broker lives: it formats its folder, creates topics, takes records and commits, rolls segments, deletes
a topic, changes configs, stops. Before each of its disk operations a copy of the disk is kept, with what
clients had been told by then. Every copy must start, and must have what they were told:

* after a kill, everything that was acknowledged, for the page cache survives;
* after a power cut, all metadata, which is synced before it is acknowledged, and of records a prefix.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykafka_broker.testing.home import Home
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.user import TOPIC_RESOURCE, User

pytestmark = pytest.mark.acknowledged

SETTINGS = {"offsets.topic.num.partitions": "1"}


class Told:
    """What clients have been told so far."""

    def __init__(self) -> None:
        self.topics: dict[str, bytes] = {}
        self.deleted: set[str] = set()
        self.records: list[bytes] = []
        self.committed: int | None = None
        self.retention_ms: str | None = None
        self.producer_id = -1

    def copy(self) -> Told:
        copy = Told()
        copy.__dict__.update(self.__dict__)
        copy.topics, copy.deleted = dict(self.topics), set(self.deleted)
        copy.records = list(self.records)
        return copy


class Recorder(MemoryFiles):
    """Keeps a copy of the disk from before each change of it."""

    def __init__(self, survivor: Callable[[MemoryFiles], MemoryFiles]) -> None:
        super().__init__()
        self.survivor = survivor
        self.told = Told()
        self.copies: list[tuple[str, MemoryFiles, Told]] = []

    def _enter(self, operation: str, path: str) -> None:
        super()._enter(operation, path)
        if operation not in ("pread", "read_file"):
            with self.step:
                told = self.told.copy()
                self.copies.append((f"{operation} {path}", self.survivor(self), told))


async def live(home: Home, told: Told) -> None:
    """A whole life; `told` grows as answers come."""
    async with home.running() as user:
        told.topics["orders"] = await user.create_topic("orders", internal_segment_bytes="1000")
        for number in range(8):
            value = b"%d" % number + bytes(300)
            await user.produce("orders", value)
            told.records.append(value)
        told.producer_id = await user.new_producer_id()
        for offset in range(3):
            await user.commit("readers", "orders", offset)
            told.committed = offset
        await user.alter_topic("orders", retention_ms="123456789")
        told.retention_ms = "123456789"
        await user.create_topic("gone")
        await user.produce("gone", b"x")
        await user.delete_topic("gone")
        told.deleted.add("gone")
        await home.pass_time(70_000)


async def check_metadata(user: User, told: Told) -> None:
    topics = await user.topics()
    assert told.topics.items() <= topics.items()
    assert not told.deleted & topics.keys()
    if told.retention_ms is not None:
        assert await user.config(TOPIC_RESOURCE, "orders", "retention.ms") == told.retention_ms
    assert await user.new_producer_id() > told.producer_id


async def check_data(user: User, told: Told) -> None:
    if told.records:
        values = await user.values("orders")
        assert values[: len(told.records)] == told.records
        assert len(values) <= len(told.records) + 1, "one may have been written and not acknowledged"
    if told.committed is not None:
        committed = await user.committed("readers")
        assert committed[("orders", 0)] in (told.committed, told.committed + 1)


async def recorded_life(survivor: Callable[[MemoryFiles], MemoryFiles]) -> tuple[Home, Recorder]:
    files = Recorder(survivor)
    home = Home(SETTINGS, files=files)
    await live(home, files.told)
    assert len(files.copies) > 100
    return home, files


@pytest.mark.timeout(900)
async def test_a_kill_before_any_disk_operation_costs_nothing_that_was_acknowledged() -> None:
    home, files = await recorded_life(MemoryFiles.killed)
    for moment, disk, told in files.copies:
        try:
            async with Home(SETTINGS, files=disk, clock=home.clock).running() as user:
                await check_metadata(user, told)
                await check_data(user, told)
                if "orders" in await user.topics():
                    await user.produce("orders", b"goes on")
        except BaseException as error:
            error.add_note(f"killed before {moment}")
            raise


@pytest.mark.timeout(900)
async def test_a_power_cut_before_any_disk_operation_leaves_all_metadata_and_a_prefix_of_the_records() -> (
    None
):
    home, files = await recorded_life(MemoryFiles.power_cut)
    for moment, disk, told in files.copies:
        try:
            async with Home(SETTINGS, files=disk, clock=home.clock).running() as user:
                await check_metadata(user, told)
                if "orders" in told.topics:
                    values = await user.values("orders")
                    everything = [b"%d" % number + bytes(300) for number in range(8)]
                    assert values == everything[: len(values)]
                    await user.produce("orders", b"goes on")
        except BaseException as error:
            error.add_note(f"power cut before {moment}")
            raise
