"""Changes of ISRs that the leaders on this node ask the controller for (Kafka's AlterPartitionManager).

One request is in flight at a time. It carries every change asked for so far, at most one per partition. A
request that failed as a whole (no controller, a time-out, a stale broker epoch) is sent again after a
pause, with the current broker epoch and all changes asked for since. The answer for each partition goes
to its leader, which decides what follows (`replication/core/transitions.py`). After an answer with errors
the same pause follows, so that leaders that try again do not do so in a busy loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pykafka_broker.controller.channel import ControllerChannel
from pykafka_broker.controller.core import events
from pykafka_broker.controller.core.events import IsrChange, IsrMember
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core.events import IsrChangeAnswered, IsrProposal
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.server.DefaultAlterPartitionManager")

#: The pause before changes are asked for again, as in Apache Kafka.
RETRY_PAUSE_MS = 50


class _Asked(NamedTuple):
    """A change that a leader waits for."""

    topic_id: bytes
    partition: int
    change: IsrProposal
    answered: Callable[[IsrChangeAnswered], None]


class QueuedIsrChanges:
    """Asks for the changes of all partitions that `node_id` leads. Event loop only."""

    def __init__(
        self, controller: ControllerChannel, node_id: int, broker_epoch: Callable[[], int], clock: Clock
    ) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._clock = clock
        #: By topic id and partition: asked for, and not answered yet.
        self._asked: dict[tuple[bytes, int], _Asked] = {}
        self._sending: asyncio.Task[None] | None = None
        self._is_closed = False
        self._lines = RepeatedLines(logger, clock.now_ms)

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        change: IsrProposal,
        answered: Callable[[IsrChangeAnswered], None],
    ) -> None:
        """Ask for `change`; OPERATION_NOT_ATTEMPTED at once while another change of the partition waits for
        an answer.

        That other change is from an earlier leadership.
        """
        if (topic_id, partition) in self._asked:
            answered(IsrChangeAnswered(change, ErrorCode.OPERATION_NOT_ATTEMPTED))
            return
        self._asked[topic_id, partition] = _Asked(topic_id, partition, change, answered)
        if self._sending is None and not self._is_closed:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def close(self) -> None:
        """Ask no more; leaders that wait for an answer get none."""
        self._is_closed = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        try:
            while self._asked:
                if not await self._send(tuple(self._asked.values())):
                    await self._clock.sleep(RETRY_PAUSE_MS)
        finally:
            self._sending = None

    async def _send(self, asked: tuple[_Asked, ...]) -> bool:
        """Ask once; False if there is a reason to wait before the next request."""
        changes = tuple(self._wanted(one) for one in asked)
        event = events.AlterPartition(self._node_id, self._broker_epoch(), changes)
        try:
            results = await self._controller.ask(event)
        except KafkaError as error:
            text = f"The controller could not be asked for the in-sync replicas of {len(asked)} partitions: "
            self._lines.log(logging.WARNING, "request", error.code.name, f"{text}{error}")
            return False
        except Exception as error:  # the changes stay queued and are sent again
            self._lines.log(logging.ERROR, "failure", type(error).__name__, "AlterPartition failed", error)
            return False
        is_well = True
        for one, result in zip(asked, results, strict=True):
            if result is None:  # left out of the answer: asked for again with the next request
                is_well = False
                continue
            del self._asked[one.topic_id, one.partition]
            if result.error is not ErrorCode.NONE:
                is_well = False
                logger.debug("%s for partition %d of %s", result.error, one.partition, one.topic_id.hex())
            one.answered(IsrChangeAnswered(one.change, result.error, result.partition))
        return is_well

    def _wanted(self, asked: _Asked) -> IsrChange:
        """The change with this node's broker epoch filled in, which a leader does not know."""
        change, own_epoch = asked.change, self._broker_epoch()
        isr = tuple(
            IsrMember(broker_id, own_epoch if broker_id == self._node_id else broker_epoch)
            for broker_id, broker_epoch in change.new_isr
        )
        return IsrChange(asked.topic_id, asked.partition, change.leader_epoch, change.partition_epoch, isr)
