"""Connects the share partitions led here with their share coordinators, and converts the values of both."""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.persister import Persister
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.share.core.events import OK, Result, StateRead
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import StateWrite, WrittenBatch


class PersistedStates:
    """Reads and writes the states of share partitions through the persister."""

    def __init__(self, persister: Persister) -> None:
        self._persister = persister

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> StateRead:
        """The state of a share partition at the coordinator, or its error."""
        result = await self._persister.read(key, leader_epoch=leader_epoch)
        if result.refusal is not None:
            return StateRead(result.refusal.error, result.refusal.message)
        batches = tuple(
            WrittenBatch(
                batch.first_offset, batch.last_offset, Delivery(batch.delivery_state), batch.delivery_count
            )
            for batch in result.batches
        )
        return StateRead(ErrorCode.NONE, None, result.state_epoch, result.start_offset, batches)

    async def write(self, key: SharePartitionKey, leader_epoch: int, write: StateWrite) -> Result:
        """Let the coordinator store the changes; return its error, or NONE."""
        result = await self._persister.write(
            key,
            state_epoch=write.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=tuple(
                StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery.value)
                for batch in write.batches
            ),
        )
        return OK if result.refusal is None else Result(result.refusal.error, result.refusal.message)
