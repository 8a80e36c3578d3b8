"""Clients that wait until other replicas of a partition have, or have deleted, records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode

Awaited = TypeVar("Awaited")


class WaitingClients(Generic[Awaited]):
    """Each client is answered when it has an outcome, or with REQUEST_TIMED_OUT. Event loop only."""

    __slots__ = ("_clock", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[tuple[Awaited, asyncio.Future[ErrorCode]]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, awaited: Awaited, timeout_ms: int | None = None) -> asyncio.Future[ErrorCode]:
        """Add a client, and return its answer; REQUEST_TIMED_OUT after `timeout_ms`, if given."""
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        one = awaited, answer
        self._waiting.append(one)
        if timeout_ms is not None:

            def time_is_up() -> None:
                if not answer.done():
                    self._waiting.remove(one)
                    answer.set_result(ErrorCode.REQUEST_TIMED_OUT)

            timer = self._clock.call_at(self._clock.monotonic_ms() + timeout_ms, time_is_up)
            answer.add_done_callback(lambda _: timer.cancel())
        return answer

    def answer(self, outcome: Callable[[Awaited], ErrorCode | None]) -> None:
        """Answer the clients that have an outcome."""
        left = []
        for one in self._waiting:
            awaited, answer = one
            error = outcome(awaited)
            if error is None:
                left.append(one)
            elif not answer.done():
                answer.set_result(error)
        self._waiting = left
