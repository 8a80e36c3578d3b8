"""The producer ids of this broker: from a block of a thousand that the controller allocates to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

from pykafka_broker.controller.core.events import ProducerIdBlock
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("org.apache.kafka.coordinator.transaction.RPCProducerIdManager")

#: How long an InitProducerId request waits for a block; the client's later requests wait behind it.
#: Apache Kafka does not wait: its clients retry.
PATIENCE_MS = 500


class ProducerIds:
    """Gives out each id once. Event loop only.

    `allocate_block` asks the controller for the next block.
    """

    def __init__(self, allocate_block: Callable[[], Awaitable[ProducerIdBlock]], clock: Clock) -> None:
        self._allocate_block = allocate_block
        self._clock = clock
        self._left: Iterator[int] = iter(())
        #: The request for the next block, which goes on even if no producer waits any more.
        self._asking: asyncio.Task[bool] | None = None
        self._lines = RepeatedLines(logger, clock.now_ms)

    async def next_id(self) -> int:
        """The next producer id; asks for another block when none is left.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS, the controller has not allocated a block yet. Clients
                retry it; older ones take REQUEST_TIMED_OUT as fatal.
        """
        give_up_ms = self._clock.monotonic_ms() + PATIENCE_MS
        while True:
            for producer_id in self._left:
                return producer_id
            asking = self._asking
            if asking is None:
                asking = self._asking = asyncio.get_running_loop().create_task(self._ask())
            is_answered = await self._is_done(asking, give_up_ms)
            if not is_answered or not asking.result():
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "Producer ID block is full. Waiting for next block",
                )

    async def _ask(self) -> bool:
        """Ask for the next block; True if the controller has allocated one."""
        try:
            first, count = await self._allocate_block()
        except KafkaError as error:
            self._lines.log(logging.WARNING, "block", "", f"Unable to allocate producer ids: {error}")
            return False
        finally:
            self._asking = None
        self._left = iter(range(first, first + count))
        return True

    async def _is_done(self, asking: asyncio.Task[bool], give_up_ms: int) -> bool:
        """Whether the controller has answered in time."""
        wait = Wait()
        asking.add_done_callback(wait.end)
        await wait.until(self._clock.call_at, give_up_ms)
        return asking.done()
