"""Finds a fresh producer id for a transaction that timed out when its producer's epochs are used up."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pykafka_broker.coordinator.transactions.core.events import AbortTimedOut, FindProducerId
from pykafka_broker.protocol.errors import KafkaError

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

#: Gives a producer id that no producer has, or raises `KafkaError`.
AllocateProducerId = Callable[[], Awaitable[int]]


async def find_producer_id(
    work: FindProducerId,
    allocate_producer_id: AllocateProducerId,
    now_ms: Callable[[], int],
    tell: Callable[[AbortTimedOut], None],
) -> None:
    """Fetch a producer id and `tell` the shard, which can then abort the transaction."""
    try:
        producer_id = await allocate_producer_id()
        tell(AbortTimedOut(now_ms(), *work, producer_id))
    except KafkaError as error:
        # The next search for timed out transactions tries again.
        logger.warning("Transaction %s timed out and stays open: %s", work.transactional_id, error)
