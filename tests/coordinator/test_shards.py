"""Partitions of a coordinator's topic that come, go and come again while their logs are being read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pykafka_broker.coordinator.shards import LoadedPartition, Shards
from pykafka_broker.machine.shard import Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import VirtualClock, settle

Lines = tuple[str, ...]


class Loader:
    """Every buffer is a line, and a record."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.end_offset = 0

    def add(self, batches: Buffer) -> int:
        self._lines.append(bytes(batches).decode())
        self.end_offset += 1
        return 1

    def digest(self, count: int) -> bool:
        return True

    def state(self) -> Lines:
        return tuple(self._lines)


class Log:
    """A log that is read as fast as the test lets it."""

    def __init__(self, lines: list[bytes | Exception]) -> None:
        self._lines = lines
        self.free = asyncio.Event()
        self.reads = 0

    async def batches(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            await self.free.wait()
            self.reads += 1
            if isinstance(line, Exception):
                raise line
            yield line


def new_shards() -> Shards[Lines, int]:
    def new_shard(loaded: LoadedPartition[Lines]) -> Shard[Lines, int]:
        return Shard(
            loaded.state,
            ShardCore(lambda state, token: Step(state, (), (Reply(token, state),)), lambda _, now_ms: now_ms),
            ShardPorts(append=lambda records: 0, scheduler=WallTimers(VirtualClock())),
            written=loaded.written,
            committed=loaded.committed,
        )

    return Shards(Loader, new_shard)


def refusal(shards: Shards[Lines, int]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        shards.shard_of(0)
    return refused.value.code


async def test_a_partition_is_being_loaded_from_the_moment_that_it_is_led() -> None:
    shards, log = new_shards(), Log([b"one"])
    loading = shards.load(0, log.batches(), leader_epoch=1)
    assert refusal(shards) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    log.free.set()
    assert await loading is True
    assert await shards.shard_of(0).ask(lambda token: token) == ("one",)


async def test_a_partition_that_goes_before_its_load_has_begun_is_not_served() -> None:
    shards, log = new_shards(), Log([b"one"])
    log.free.set()
    loading = shards.load(0, log.batches(), leader_epoch=1)
    shards.unload(0)
    assert await loading is False
    assert refusal(shards) is ErrorCode.NOT_COORDINATOR


async def test_an_older_load_does_not_end_what_a_newer_one_serves() -> None:
    shards, old, new = new_shards(), Log([b"one", b"two", b"three"]), Log([b"one", b"four"])
    first = asyncio.ensure_future(shards.load(0, old.batches(), leader_epoch=1))
    await settle()
    second = asyncio.ensure_future(shards.load(0, new.batches(), leader_epoch=3))
    new.free.set()
    assert await second is True
    old.free.set()
    assert await first is False
    assert old.reads == 1, "the rest is of no use"
    assert await shards.shard_of(0).ask(lambda token: token) == ("one", "four")


async def test_a_log_that_fails_is_not_served_but_can_be_loaded_again() -> None:
    shards, broken, mended = (
        new_shards(),
        Log([b"one", KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)]),
        Log([b"one"]),
    )
    for log in (broken, mended):
        log.free.set()
    with pytest.raises(KafkaError):
        await shards.load(0, broken.batches(), leader_epoch=1)
    assert refusal(shards) is ErrorCode.NOT_COORDINATOR
    assert await shards.load(0, mended.batches(), leader_epoch=2) is True


async def test_the_failure_of_a_log_that_went_meanwhile_is_of_no_interest() -> None:
    shards, log = new_shards(), Log([KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)])
    loading = asyncio.ensure_future(shards.load(0, log.batches(), leader_epoch=1))
    await settle()
    shards.unload(0)
    log.free.set()
    assert await loading is False


async def test_who_waits_for_a_load_goes_on_when_it_is_over_and_when_it_is_given_up() -> None:
    shards, log = new_shards(), Log([b"one"])
    for end in ("loaded", "unloaded"):
        log.free.clear()
        loading = asyncio.ensure_future(shards.load(0, log.batches(), leader_epoch=1))
        waiting = asyncio.ensure_future(shards.loaded(0))
        await settle()
        assert not waiting.done()
        if end == "unloaded":
            shards.unload(0)
        log.free.set()
        await waiting
        assert await loading is (end == "loaded")
    await shards.loaded(0)


async def test_what_is_committed_while_the_log_is_read_counts_for_answers() -> None:
    shards, log = new_shards(), Log([b"one", b"two"])
    loading = asyncio.ensure_future(shards.load(0, log.batches(), leader_epoch=1, high_watermark=0))
    await settle()
    shards.on_high_watermark(0, 1)
    log.free.set()
    assert await loading is True
    asking = shards.shard_of(0).ask(lambda token: token)
    assert not asking.done()
    shards.on_high_watermark(0, 2)
    assert await asking == ("one", "two")
