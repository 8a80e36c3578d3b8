"""Writes the markers of a decided transaction until each of its partitions has one, then tells its shard.

The work belongs to the partition of `__transaction_state` that holds the decision. It ends when the partition
is unloaded; the coordinator that loads it next starts the work again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.partition_work import pause
from pykafka_broker.coordinator.transactions.core.events import MarkersWritten, WriteMarkers
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import TopicPartition

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

#: The pause before failed work is retried.
RETRY_MS = 100

#: Answers after which a partition needs no marker any more. INVALID_PRODUCER_EPOCH means that the transaction
#: has already ended there.
_MARKER_IS_DONE = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})


class MarkerWriter(Protocol):
    """Writes markers into partitions, on the nodes that lead them."""

    async def write(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Write `marker` into each partition; the answer comes when those that succeed are committed.

        Deleted partitions are left out of the answer.
        """
        ...


class MarkerWork:
    """Carries out `WriteMarkers`."""

    def __init__(self, writer: MarkerWriter, scheduler: Scheduler) -> None:
        self._writer = writer
        self._scheduler = scheduler

    async def run(
        self, work: WriteMarkers, coordinator_epoch: int, tell: Callable[[MarkersWritten], None]
    ) -> None:
        """Write all markers under the epoch of the coordinator's partition, then `tell` the shard.

        A coordinator that has been replaced stops and does not call `tell`: its successor writes the markers.
        """
        marker = Marker(
            work.producer_id,
            work.producer_epoch,
            work.commit,
            coordinator_epoch,
            work.transaction_version,
        )
        if await self._write_all(work, marker):
            await self._tell(work, tell)

    async def _write_all(self, work: WriteMarkers, marker: Marker) -> bool:
        """Write the marker into each partition, with retries; False if a later coordinator has taken over."""
        left = work.partitions
        is_first = True
        while left:
            try:
                results = await self._writer.write(marker, sorted(left))
            except Exception:  # the transaction is decided, and is open until its markers are written
                if is_first:
                    logger.exception(
                        "Failed to write the markers of transaction %s; retrying.", work.transactional_id
                    )
                is_first = False
                await pause(self._scheduler, RETRY_MS)
                continue
            if ErrorCode.TRANSACTION_COORDINATOR_FENCED in results.values():
                logger.warning(
                    "Stopped writing the markers of transaction %s: a coordinator with a later epoch than "
                    "%d has taken over.",
                    work.transactional_id,
                    marker.coordinator_epoch,
                )
                return False
            left = frozenset(
                partition
                for partition in left
                if results.get(partition, ErrorCode.NONE) not in _MARKER_IS_DONE
            )
            if not left:
                break
            if is_first:
                reasons = sorted({results[partition].name for partition in left})
                logger.info(
                    "Markers of transaction %s cannot be written to %d partitions yet (%s); retrying.",
                    work.transactional_id,
                    len(left),
                    ", ".join(reasons),
                )
            is_first = False
            await pause(self._scheduler, RETRY_MS)
        return True

    async def _tell(self, work: WriteMarkers, tell: Callable[[MarkersWritten], None]) -> None:
        while True:
            now_ms = self._scheduler.now_ms()
            try:
                tell(MarkersWritten(now_ms, work.transactional_id, work.producer_id, work.producer_epoch))
            except KafkaError:
                # The decision and the markers stand; only the completion has to wait.
                await pause(self._scheduler, RETRY_MS)
            else:
                return
