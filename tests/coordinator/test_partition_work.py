"""Work that shards have started: it ends by itself or with its partition."""

from __future__ import annotations

import asyncio

from pykafka_broker.coordinator.partition_work import PartitionWork, pause
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.testing.clock import VirtualClock, settle


async def test_work_ends_with_its_partition_and_that_of_others_goes_on() -> None:
    work = PartitionWork()
    go_on = asyncio.Event()
    done: list[str] = []

    async def job(name: str) -> None:
        await go_on.wait()
        done.append(name)

    work.start(0, job("moved away"))
    work.start(0, job("moved away too"))
    work.start(1, job("stays"))
    await settle()

    work.cancel(0)
    go_on.set()
    await settle()

    assert done == ["stays"]


async def test_a_partition_that_comes_back_may_start_work_anew() -> None:
    work = PartitionWork()
    done: list[str] = []

    async def job(name: str) -> None:
        done.append(name)

    work.start(0, job("before"))
    work.cancel(0)
    work.start(0, job("after"))
    await settle()

    assert done == ["after"]


async def test_a_pause_lasts_as_long_as_asked_and_leaves_no_timer_when_it_is_cancelled() -> None:
    clock = VirtualClock()
    pausing = [asyncio.ensure_future(pause(WallTimers(clock), 100)) for _ in range(2)]
    await clock.pass_time(99)
    assert not any(each.done() for each in pausing)

    pausing[0].cancel()
    await settle()
    assert clock.pending_timers == 1

    await clock.pass_time(1)
    assert pausing[1].done()
