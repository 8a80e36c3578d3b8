"""A parked fetch is woken by every append that concerns it, whenever the two meet."""

from __future__ import annotations

import asyncio

from tests.support.broker import Home, User

#: Real seconds; the brokers' own clock stands still here, so a fetch that nobody wakes never ends.
PATIENCE_SECONDS = 10


async def test_a_record_appended_in_the_turn_in_which_a_fetch_arrives_wakes_it() -> None:
    """The fetch used to plan, let the append of another connection run, and only then begin to watch."""
    home = Home()
    async with home.running() as reader, await User.connect(home.broker.bootstrap_servers) as writer:
        await reader.create_topic("t")
        for offset in range(20):
            fetch = asyncio.create_task(reader.fetch("t", offset, max_wait_ms=10_000))
            produce = asyncio.create_task(writer.produce("t", b"value"))

            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await produce == offset
                assert (await fetch).high_watermark == offset + 1
