"""The system's clock and the loop it runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import TypeVarTuple

import pytest

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.system import event_loop

Args = TypeVarTuple("Args")


class HastyLoop(asyncio.SelectorEventLoop):
    """Calls back when half of the time is over."""

    def call_later(
        self, delay: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_later(delay / 2, callback, *args, context=context)


@pytest.fixture(params=["the broker's", "asyncio's", "hasty"])
def new_loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
        "the broker's": event_loop.loop_factory(),
        "asyncio's": asyncio.SelectorEventLoop,
        "hasty": HastyLoop,
    }
    return loops[request.param]


def test_a_callback_finds_its_moment_reached_on_every_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    clock = SystemClock()

    async def early() -> list[int]:
        """How much too early timers came that were set at all parts of a millisecond."""
        left_ms: list[int] = []
        all_called = asyncio.Event()

        def called(due_ms: int) -> None:
            left_ms.append(due_ms - clock.monotonic_ms())
            if len(left_ms) == 300:
                all_called.set()

        for number in range(300):
            due_ms = clock.monotonic_ms() + 1 + number % 20
            clock.call_at(due_ms, partial(called, due_ms))
            await asyncio.sleep(0)
        await all_called.wait()
        return [each for each in left_ms if each > 0]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(early()) == []


def test_a_sleep_is_never_too_short_on_any_loop(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    clock = SystemClock()

    async def short() -> list[int]:
        async def left_ms(duration_ms: int) -> int:
            until_ms = clock.monotonic_ms() + duration_ms
            await clock.sleep(duration_ms)
            return until_ms - clock.monotonic_ms()

        return [each for each in await asyncio.gather(*map(left_ms, range(20))) if each > 0]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(short()) == []


async def test_a_timer_can_be_cancelled_before_and_after_it_has_called() -> None:
    clock = SystemClock()
    called: list[str] = []
    timer = clock.call_at(clock.monotonic_ms(), lambda: called.append("due"))
    await clock.sleep(1)
    timer.cancel()
    assert called == ["due"]


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
