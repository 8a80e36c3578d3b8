"""Writes transaction markers into the partitions that this node leads, for coordinators here and elsewhere.

Markers for partitions of `__consumer_offsets` go through the group coordinator, which applies or drops the
offsets of the transaction. All others are appended like any batch of a coordinator, and are written once all
in-sync replicas have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.ports import LedPartitions
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.replication.core.access import ACKS_ALL
from pykafka_broker.replication.leading_replica import LeadingReplica


class OffsetMarkers(Protocol):
    """Writes markers into the partitions of `__consumer_offsets`."""

    async def complete_transaction(self, partition: int, marker: Marker) -> ErrorCode:
        """Write one marker; return the outcome once it is committed."""
        ...


class LocalMarkers:
    """Event loop only. `timeout_ms` is the longest wait for replicas, `request.timeout.ms`."""

    def __init__(
        self,
        offsets: OffsetMarkers,
        partitions: LedPartitions,
        now_ms: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self._offsets = offsets
        self._partitions = partitions
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms

    async def write_here(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Write `marker` into each partition; an error for partitions that this node does not lead.

        All markers are appended before the first is waited for. A partition named twice gets one marker, as
        in Apache Kafka.
        """
        results: dict[TopicPartition, ErrorCode] = {}
        waiting: dict[TopicPartition, Awaitable[ErrorCode]] = {}
        batch = marker.batch(self._now_ms())
        for each in dict.fromkeys(partitions):
            partition = self._partitions.led(each.topic, each.partition)
            results[each] = ErrorCode.NONE
            if partition is None:
                results[each] = self._partitions.why_not_led(each.topic, each.partition)
            elif each.topic == OFFSETS_TOPIC:
                waiting[each] = self._offsets.complete_transaction(each.partition, marker)
            else:
                try:
                    acknowledged = self._append(partition, batch, marker)
                except KafkaError as error:
                    results[each] = error.code
                    continue
                if acknowledged is not None:
                    waiting[each] = acknowledged
        if len(waiting) == 1:
            [(each, answer)] = waiting.items()
            results[each] = await answer
        elif waiting:
            results.update(zip(waiting, await asyncio.gather(*waiting.values()), strict=True))
        return results

    async def write_all_here(
        self, markers: Iterable[tuple[Marker, Iterable[TopicPartition]]]
    ) -> list[dict[TopicPartition, ErrorCode]]:
        """The same for many markers; one that has to wait for replicas does not hold up the others."""
        return await asyncio.gather(*(self.write_here(marker, partitions) for marker, partitions in markers))

    def _append(self, partition: LeadingReplica, batch: bytes, marker: Marker) -> Awaitable[ErrorCode] | None:
        """Append the marker; returns what to wait for, None if it is acknowledged."""
        end = partition.append_marker(batch, self._now_ms(), marker.transaction_version)
        if isinstance(end, int):
            return partition.committing.acknowledged(end, ACKS_ALL, self._timeout_ms)
        return self._appended_later(partition, end)

    async def _appended_later(self, partition: LeadingReplica, appended: Awaitable[int]) -> ErrorCode:
        try:
            end = await appended
        except KafkaError as error:
            return error.code
        acknowledged = partition.committing.acknowledged(end, ACKS_ALL, self._timeout_ms)
        return ErrorCode.NONE if acknowledged is None else await acknowledged
