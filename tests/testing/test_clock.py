"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from functools import partial

from pykafka_broker.testing.clock import NOW, VirtualClock, settle


def test_timers_run_in_their_order_each_at_its_own_moment() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, int]] = []

    def see(name: str) -> None:
        seen.append((name, clock.monotonic_ms()))

    for name, due_ms in (("late", 300), ("early", 100), ("after early", 100), ("too late", 301)):
        clock.call_at(due_ms, partial(see, name))

    clock.advance(300)

    assert seen == [("early", 100), ("after early", 100), ("late", 300)]
    assert (clock.now_ms(), clock.pending_timers) == (NOW + 300, 1)


def test_a_cancelled_timer_does_not_run() -> None:
    clock = VirtualClock()
    seen: list[str] = []
    clock.call_at(100, lambda: seen.append("cancelled")).cancel()

    clock.advance(200)

    assert (seen, clock.pending_timers) == ([], 0)


async def test_tasks_react_to_a_timer_before_the_next_one() -> None:
    clock = VirtualClock()
    seen: list[int] = []

    async def tick() -> None:
        while True:
            await clock.sleep(100)
            seen.append(clock.monotonic_ms())

    ticking = asyncio.ensure_future(tick())
    await clock.pass_time(350)

    assert seen == [100, 200, 300]
    ticking.cancel()
    await settle()
    assert clock.pending_timers == 0


async def test_a_timer_that_is_due_already_runs_without_time_passing() -> None:
    clock = VirtualClock()
    seen: list[int] = []
    clock.call_at(0, lambda: seen.append(clock.monotonic_ms()))

    await settle()

    assert seen == [0]


def test_a_hasty_clock_calls_early_once_and_then_at_the_moment() -> None:
    clock = VirtualClock(early_ms=2)
    seen: list[int] = []

    def look() -> None:
        seen.append(clock.monotonic_ms())
        if clock.monotonic_ms() < 100:
            clock.call_at(100, look)

    clock.call_at(100, look)
    clock.advance(200)

    assert seen == [98, 100]
