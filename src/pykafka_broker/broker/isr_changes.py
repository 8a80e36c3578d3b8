"""Changes of ISRs that the leaders on this node ask the controller for.

So far this node has no controller API to ask: AlterPartition comes with replication between brokers, as a
method of `metadata/controller_channel.py` that a class here calls, in batches and again where it failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykafka_broker.replication.core.events import AlterPartition, IsrChangeRefused

logger = logging.getLogger("kafka.server.DefaultAlterPartitionManager")


class RefusedIsrChanges:
    """Refuses every change, so that the ISR stays as the metadata has it."""

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        change: AlterPartition,
        refused: Callable[[IsrChangeRefused], None],
    ) -> None:
        logger.debug("No controller to ask for %s of %s-%d", change, topic_id.hex(), partition)
        refused(IsrChangeRefused(change.partition_epoch))
