"""The producer ids of this broker: from a block of a thousand that the controller allocates to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

from pykafka_broker.controller.core.events import ProducerIdBlock
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("org.apache.kafka.coordinator.transaction.RPCProducerIdManager")

#: How long an InitProducerId request waits for a block; the client's later requests wait behind it.
#: Apache Kafka does not wait: its clients retry.
PATIENCE_MS = 500
#: The pauses after refused requests for a block; those of Apache Kafka do not grow. A broker that was
#: unregistered is refused until it is restarted.
PAUSES = Backoff(first_ms=50, greatest_ms=1_000)


class ProducerIds:
    """Gives out each id once. Event loop only.

    `allocate_block` asks the controller for the next block, as the broker of the epoch `broker_epoch()`.
    """

    def __init__(
        self,
        allocate_block: Callable[[], Awaitable[ProducerIdBlock]],
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._allocate_block = allocate_block
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._left: Iterator[int] = iter(())
        #: The request for the next block, which goes on even if no producer waits any more.
        self._asking: asyncio.Task[bool] | None = None
        #: How often the controller has refused one after the other, and until when it is not asked again.
        self._refusals = 0
        self._paused_until_ms = clock.monotonic_ms()
        #: The epoch of which the log says that it is stale.
        self._stale_epoch: int | None = None
        self._lines = RepeatedLines(logger, clock.monotonic_ms)

    async def next_id(self) -> int:
        """The next producer id; asks for another block when none is left, unless it pauses.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS, the controller has not allocated a block yet. Clients
                retry it; older ones take REQUEST_TIMED_OUT as fatal.
        """
        give_up_ms = self._clock.monotonic_ms() + PATIENCE_MS
        while True:
            for producer_id in self._left:
                return producer_id
            asking = self._asking
            if asking is None and self._clock.monotonic_ms() >= self._paused_until_ms:
                asking = self._asking = asyncio.get_running_loop().create_task(self._ask())
            if asking is None or not await self._is_done(asking, give_up_ms) or not asking.result():
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "Producer ID block is full. Waiting for next block",
                )

    async def _ask(self) -> bool:
        """Ask for the next block; True if the controller has allocated one."""
        epoch = self._broker_epoch()
        try:
            first, count = await self._allocate_block()
        except KafkaError as error:
            self._log_refusal(error, epoch)
            self._paused_until_ms = self._clock.monotonic_ms() + PAUSES.pause_ms(self._refusals)
            self._refusals += 1
            return False
        finally:
            self._asking = None
        self._refusals = 0
        self._left = iter(range(first, first + count))
        return True

    def _log_refusal(self, error: KafkaError, epoch: int) -> None:
        """Log why there is no block; of a stale epoch, only once: it does not become valid again."""
        if error.code is not ErrorCode.STALE_BROKER_EPOCH:
            self._lines.log(logging.WARNING, "block", "", f"Unable to allocate producer ids: {error}")
        elif epoch != self._stale_epoch:
            self._stale_epoch = epoch
            logger.warning("Our broker currently has a stale epoch (%d), retrying", epoch)

    async def _is_done(self, asking: asyncio.Task[bool], give_up_ms: int) -> bool:
        """Whether the controller has answered in time."""
        wait = Wait()
        asking.add_done_callback(wait.end)
        await wait.until(self._clock.call_at, give_up_ms)
        return asking.done()
