"""A wait that ends at a certain time, or before it."""

from __future__ import annotations

import asyncio

from pykafka_broker.machine.wait import Wait
from pykafka_broker.testing.clock import VirtualClock


async def test_a_wait_ends_when_it_is_told_or_when_its_time_has_come() -> None:
    clock = VirtualClock()
    told, forgotten = Wait(), Wait()
    both = asyncio.gather(*(wait.until(clock.call_at, 1_000) for wait in (told, forgotten)))

    await clock.pass_time(999)
    told.end()
    told.end()
    await clock.pass_time(1)

    assert await both == [True, False]
    assert clock.pending_timers == 0


async def test_a_wait_that_is_told_before_it_begins_is_over_at_once() -> None:
    clock, wait = VirtualClock(), Wait()
    wait.end()

    assert await wait.until(clock.call_at, 1_000)
