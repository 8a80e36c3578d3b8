"""Periodic work: by the clock, one round at a time, ended in order."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.machine.periodic_work import PeriodicWork
from pykafka_broker.testing.clock import VirtualClock, settle


class Rounds:
    """Work whose rounds end when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.door = asyncio.Event()
        self.door.set()

    async def __call__(self) -> None:
        self.begun += 1
        await self.door.wait()
        self.ended += 1


async def test_a_round_is_due_after_each_pause() -> None:
    clock, rounds = VirtualClock(), Rounds()
    work = PeriodicWork(clock, 1_000, rounds)
    work.start()
    await clock.pass_time(999)
    assert rounds.begun == 0
    await clock.pass_time(3_001)
    assert rounds.ended == 4
    await work.stop()
    await clock.pass_time(5_000)
    assert (rounds.ended, clock.pending_timers) == (4, 0)


async def test_a_slow_round_is_not_overtaken_and_a_stop_waits_for_it() -> None:
    clock, rounds = VirtualClock(), Rounds()
    work = PeriodicWork(clock, 1_000, rounds)
    work.start()
    rounds.door.clear()
    await clock.pass_time(10_000)
    assert rounds.begun == 1
    stopping = asyncio.ensure_future(work.stop())
    await settle()
    assert not stopping.done()
    rounds.door.set()
    await stopping
    assert (rounds.begun, rounds.ended, clock.pending_timers) == (1, 1, 0)


async def test_a_round_that_fails_is_reported_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, calls = VirtualClock(), []

    async def fail() -> None:
        calls.append(clock.now_ms())
        raise RuntimeError("no luck")

    work = PeriodicWork(clock, 1_000, fail)
    work.start()
    await clock.pass_time(2_000)
    await work.stop()
    assert len(calls) == 2
    assert [record.message for record in caplog.records] == ["Periodic work failed; it is tried again"] * 2


async def test_a_round_whose_own_wait_is_cancelled_is_followed_by_another() -> None:
    clock, waits = VirtualClock(), []

    async def wait() -> None:
        waits.append(asyncio.get_running_loop().create_future())
        await waits[-1]

    work = PeriodicWork(clock, 1_000, wait)
    work.start()
    await clock.pass_time(1_000)
    waits[0].cancel()
    await settle()
    await clock.pass_time(1_000)
    assert len(waits) == 2
    stopping = asyncio.ensure_future(work.stop())
    await settle()
    waits[1].cancel()
    await stopping
    assert clock.pending_timers == 0


async def test_stopping_what_never_began_is_harmless() -> None:
    await PeriodicWork(VirtualClock(), 1_000, Rounds()).stop()
