"""A disk that stands still holds up whoever needs it, and nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.server.disk_threads import THREADS_PER_DIRECTORY
from tests.support.broker import EARLIEST, NOW, Home, User, until

#: Twice as many as there are threads for anything.
CROWD = 2 * THREADS_PER_DIRECTORY
BOTH_DISKS = "/fast,/slow"


@contextmanager
def standing_still(home: Home, operation: str, suffix: str = "") -> Iterator[set[str]]:
    """Such operations of the slow disk do not return; the set says whether one waits."""
    gate = threading.Event()
    waiting: set[str] = set()

    def meanwhile(done: str, path: str) -> None:
        if done == operation and path.startswith("/slow/") and path.endswith(suffix):
            waiting.add(operation)
            gate.wait()

    home.files.is_cached = False
    home.files.meanwhile = meanwhile
    try:
        yield waiting
    finally:
        home.files.meanwhile = None
        gate.set()


async def one_on_each_disk(home: Home, user: User, **configs: str) -> tuple[str, str]:
    """A topic on the fast disk and one on the slow one, each with a record."""
    for name in ("one", "other"):
        await user.create_topic(name, **configs)
        await user.produce(name, b"x")
    on_fast = [name for name in ("one", "other") if home.files.exists(f"/fast/{name}-0")]
    on_slow = [name for name in ("one", "other") if home.files.exists(f"/slow/{name}-0")]
    [[fast], [slow]] = on_fast, on_slow
    return fast, slow


@asynccontextmanager
async def crowd(home: Home) -> AsyncIterator[list[User]]:
    async with AsyncExitStack() as stack:
        address = home.broker.bootstrap_servers
        yield [await stack.enter_async_context(await User.connect(address)) for _ in range(CROWD)]


async def test_readers_of_a_disk_that_stands_still_hold_up_no_reader_of_another() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user)
        async with crowd(home) as users:
            with standing_still(home, "pread") as waiting:
                asked = [asyncio.ensure_future(each.fetch(slow)) for each in users[::2]]
                asked += [asyncio.ensure_future(each.offset_for(slow, NOW)) for each in users[1::2]]
                await until(lambda: waiting == {"pread"})

                assert await user.values(fast) == [b"x"]
                assert await user.offset_for(fast, NOW) == 0
                assert await user.produce(fast, b"y") == 1
                assert not any(future.done() for future in asked)

            answers = await asyncio.gather(*asked)
            assert [answer.error_code for answer in answers[: CROWD // 2]] == [ErrorCode.NONE] * (CROWD // 2)
            assert answers[CROWD // 2 :] == [0] * (CROWD // 2)


async def test_readers_of_a_disk_hold_up_no_acknowledgement_that_waits_for_its_sync() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        _, slow = await one_on_each_disk(home, user, flush_messages="1")
        async with crowd(home) as users:
            with standing_still(home, "pread") as waiting:
                asked = [asyncio.ensure_future(each.fetch(slow)) for each in users]
                await until(lambda: waiting == {"pread"})
                assert await user.produce(slow, b"y") == 1
                assert not any(future.done() for future in asked)
            await asyncio.gather(*asked)


@pytest.mark.parametrize("operation", ["sync", "rename"])
async def test_what_a_slow_disk_does_behind_its_clients_backs_holds_up_no_topic_of_another(
    operation: str,
) -> None:
    """Closed segments are synced, and those that retention took are renamed, while nobody waits for it."""
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user, internal_segment_bytes="200", retention_bytes="200")
        with standing_still(home, operation, ".log") as waiting:
            for _ in range(CROWD):
                await user.produce(slow, bytes(60))
                home.broker.logs.apply_retention(NOW)
            await until(lambda: waiting == {operation})

            await user.create_topic("new")
            assert await user.offset_for(fast, NOW) == 0
            assert await user.values(fast) == [b"x"]


async def test_the_age_of_segments_is_not_read_where_others_have_to_wait() -> None:
    """After a start no segment's newest timestamp is known: it stands in the time index."""
    home = Home({"log.retention.check.interval.ms": "1000"}, data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user, internal_segment_bytes="200", retention_ms="1000")
        for _ in range(CROWD):
            await user.produce(slow, bytes(60))
    async with home.running() as user:
        with standing_still(home, "pread", ".timeindex") as waiting:
            await home.pass_time(60_000)
            await until(lambda: waiting == {"pread"})
            assert await user.values(fast) == []
            assert await user.offset_for(slow, EARLIEST) == 0
        await until(lambda: home.broker.logs.get(slow, 0).log_start_offset == CROWD + 1)
