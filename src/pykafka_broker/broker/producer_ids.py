"""The producer ids of this broker: from a block of a thousand that the controller allocates to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from pykafka_broker.cluster.events import ProducerIdBlock


class ProducerIds:
    """Gives out each id once. Made inside the event loop.

    `allocate_block` asks the controller for the next block.
    """

    def __init__(self, allocate_block: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate_block = allocate_block
        self._left: Iterator[int] = iter(())
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        """The next producer id; asks for another block when none is left.

        Raises:
            KafkaError: the controller could not allocate a block.
        """
        async with self._lock:
            for producer_id in self._left:
                return producer_id
            first, count = await self._allocate_block()
            self._left = iter(range(first + 1, first + count))
            return first
