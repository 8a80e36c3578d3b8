"""Clients that wait for other replicas of a partition: to have their records, or to have deleted some.

Each is answered when there is an outcome for what it waits for, or with REQUEST_TIMED_OUT. Event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

Awaited = TypeVar("Awaited")


class Waiting(NamedTuple, Generic[Awaited]):
    """One of them, and what it waits for."""

    awaited: Awaited
    answer: asyncio.Future[ErrorCode]


def wait(
    waiting: list[Waiting[Awaited]], awaited: Awaited, clock: Clock, timeout_ms: int | None = None
) -> asyncio.Future[ErrorCode]:
    """Add a client, and return its answer: REQUEST_TIMED_OUT after `timeout_ms`, if that is given."""
    one = Waiting(awaited, asyncio.get_running_loop().create_future())
    waiting.append(one)
    if timeout_ms is not None:

        def time_is_up() -> None:
            if not one.answer.done():
                waiting.remove(one)
                one.answer.set_result(ErrorCode.REQUEST_TIMED_OUT)

        timer = clock.call_at(clock.monotonic_ms() + timeout_ms, time_is_up)
        one.answer.add_done_callback(lambda _: timer.cancel())
    return one.answer


def answer(waiting: list[Waiting[Awaited]], outcome: Callable[[Awaited], ErrorCode | None]) -> None:
    """Answer those for whom there is an outcome."""
    left = []
    for one in waiting:
        error = outcome(one.awaited)
        if error is None:
            left.append(one)
        elif not one.answer.done():
            one.answer.set_result(error)
    waiting[:] = left
