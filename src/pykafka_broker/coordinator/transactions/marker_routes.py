"""Brings the markers of a transaction to the leaders of its partitions: this node, and others.

A partition whose leader cannot be reached, or refuses, gets its marker later: the work of the transaction
tries again (`transactions/marker_work.py`), each time with the leaders of the newest metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from pykafka_broker.cluster.image import NO_LEADER
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.ports import Metadata
from pykafka_broker.coordinator.transactions.local_markers import LocalMarkers
from pykafka_broker.coordinator.transactions.remote_markers import RemoteMarkers
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import TopicPartition


class MarkerRoutes:
    """The `MarkerWriter` of the transaction coordinator on this node. Event loop only."""

    def __init__(
        self, node_id: int, metadata: Metadata, here: LocalMarkers, elsewhere: RemoteMarkers
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._here = here
        self._elsewhere = elsewhere

    async def write(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Write `marker` into each partition that still exists; see `MarkerWriter`."""
        image = self._metadata.image
        by_leader: dict[int, list[TopicPartition]] = {}
        for each in partitions:
            registration = image.partition(each.topic, each.partition)
            if registration is not None:
                by_leader.setdefault(registration.leader, []).append(each)
        results = dict.fromkeys(by_leader.pop(NO_LEADER, ()), ErrorCode.LEADER_NOT_AVAILABLE)
        led_here = by_leader.pop(self._node_id, ())
        if not by_leader:
            results.update(await self._here.write_here(marker, led_here))
            return results
        for outcome in await asyncio.gather(
            self._here.write_here(marker, led_here),
            *(self._elsewhere.write(leader, marker, theirs) for leader, theirs in by_leader.items()),
        ):
            results.update(outcome)
        return results
