"""The system's clock and the loop it runs on."""

from __future__ import annotations

import asyncio

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.system import event_loop


async def test_a_callback_finds_its_moment_reached() -> None:
    clock = SystemClock()
    due_ms = clock.monotonic_ms() + 5
    called: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    clock.call_at(due_ms, lambda: called.set_result(clock.monotonic_ms()))
    assert await called >= due_ms


async def test_a_cancelled_timer_does_not_call() -> None:
    clock = SystemClock()
    called = []
    clock.call_at(clock.monotonic_ms(), lambda: called.append("cancelled")).cancel()
    clock.call_at(clock.monotonic_ms() + 1, lambda: called.append("due"))
    await clock.sleep(5)
    assert called == ["due"]


def test_the_best_loop_of_the_machine_runs_the_broker() -> None:
    async def name() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert event_loop.run(name()).partition(".")[0] in ("uvloop", "asyncio")


def test_the_limit_of_open_files_is_lifted_as_far_as_allowed() -> None:
    limit = event_loop.raise_open_file_limit()
    assert limit is None or limit > 0
    assert event_loop.raise_open_file_limit() == limit
