"""Every append to a partition of a parked fetch wakes the fetch, whenever it comes.

The broker's clock stands still here, so a fetch that no append wakes never ends.
"""

from __future__ import annotations

import asyncio

from pykafka_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.home import PATIENCE_SECONDS, Home, until
from pykafka_broker.testing.user import User


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


def whole_topic(partitions: int, min_bytes: int) -> FetchRequest:
    """A fetch of all partitions of the topic "t"."""
    wanted = [
        FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        for partition in range(partitions)
    ]
    topic = FetchTopic(topic="t", partitions=wanted)
    return FetchRequest(max_wait_ms=10_000, min_bytes=min_bytes, max_bytes=1 << 25, topics=[topic])


def sizes(answer: FetchResponse) -> list[int]:
    """How many bytes came of each partition."""
    return [len(partition.records or b"") for partition in answer.responses[0].partitions]


async def test_a_fetch_that_wants_much_is_woken_when_all_its_partitions_together_have_it() -> None:
    home = Home()
    async with home.running() as reader, await User.connect(home.broker.bootstrap_servers) as writer:
        await reader.create_topic("t", 3)
        asked = asyncio.create_task(reader.send(whole_topic(3, min_bytes=3_000), 12))
        await until(lambda: home.broker.node.broker.purgatory.parked)
        for partition in range(3):
            assert not asked.done()
            await writer.produce("t", b"x" * 1_000, partition=partition)
            await settle()
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await asked
        assert [size > 1_000 for size in sizes(answer)] == [True, True, True]


async def test_a_woken_fetch_gets_no_more_than_there_is_room_for_by_then() -> None:
    home = Home()
    async with home.running() as reader, await User.connect(home.broker.bootstrap_servers) as writer:
        await reader.create_topic("t", 3)
        asked = asyncio.create_task(reader.send(whole_topic(3, min_bytes=150_000), 12))
        await until(lambda: home.broker.node.broker.purgatory.parked)
        unsent = home.broker.node.listeners.shared.unsent
        await writer.produce("t", b"x" * 50_000, partition=0)
        await writer.produce("t", b"x" * 50_000, partition=1)
        unsent.count(unsent.limit_bytes)
        await writer.produce("t", b"x" * 50_000, partition=2)
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await asked
        unsent.count(-unsent.limit_bytes)
        assert 0 < sum(sizes(answer)) <= 64 * 1024
