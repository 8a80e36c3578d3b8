"""The coordinators of a node: of groups and of transactions, each with the topic that holds its state.

A coordinator for share groups, with `__share_group_state`, would be the third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pykafka_broker.broker.cold_reads import ColdReads
from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.producer_ids import ProducerIds
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordination.coordinator_topic import CoordinatorTopic
from pykafka_broker.coordination.groups import GroupService
from pykafka_broker.coordination.offsets_topic import OffsetsTopic
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.coordination.transaction_markers import TransactionMarkers
from pykafka_broker.coordination.transactions import TransactionService
from pykafka_broker.coordination.transactions_topic import TransactionsTopic
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.raft.format import random_uuid
from pykafka_broker.replication.partition import Partition
from pykafka_broker.replication.replica_manager import ReplicaManager


class Coordinators:
    """Tells each coordinator which partitions of its topic this node leads. Event loop only."""

    def __init__(
        self, offsets: OffsetsTopic, transactions: TransactionsTopic, markers: TransactionMarkers
    ) -> None:
        self.offsets = offsets
        self.transactions = transactions
        self.markers = markers
        self._topics: dict[str, CoordinatorTopic] = {topic.name: topic for topic in (offsets, transactions)}

    def __iter__(self) -> Iterator[CoordinatorTopic]:
        return iter(self._topics.values())

    @property
    def group_service(self) -> GroupService:
        """What group requests are answered by."""
        return self.offsets.groups

    @property
    def transaction_service(self) -> TransactionService:
        """What transaction requests are answered by."""
        return self.transactions.transactions

    def lead(self, partition: Partition) -> None:
        """Serve what a partition holds: this node leads it from now on."""
        if (topic := self._topics.get(partition.topic)) is not None:
            topic.lead(partition)

    def resign(self, partition: Partition) -> None:
        """Serve a partition no longer: this node does not lead it any more."""
        if (topic := self._topics.get(partition.topic)) is not None:
            topic.resign(partition)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the metadata."""
        for topic in self:
            topic.on_image(old, new)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed settings."""
        for topic in self:
            topic.reconfigure(config)

    async def loaded(self) -> None:
        """Return when no partition is being loaded."""
        for topic in self:
            await topic.loaded()

    def refuse(self) -> None:
        """Answer every request that waits, and all later ones, with NOT_COORDINATOR."""
        for topic in self:
            topic.coordinator.close()

    async def close(self) -> None:
        """Serve nothing any more; no log is being read when this returns."""
        for topic in reversed(self._topics.values()):
            await topic.close()


def build_coordinators(
    foundation: Foundation,
    creation: TopicCreation,
    replicas: ReplicaManager,
    logs: LogManager,
    cold_reads: ColdReads,
    producer_ids: ProducerIds,
    image: Callable[[], ClusterImage],
) -> Coordinators:
    """Coordinators that serve no partition yet."""
    config, timers = foundation.config, foundation.timers
    offsets = OffsetsTopic(
        config,
        creation,
        timers,
        new_uuid=_new_uuid,
        run_blocking=foundation.threads.run_blocking,
        read_cold=cold_reads.run,
    )
    markers = TransactionMarkers(
        offsets,
        led=replicas.led,
        why_not_led=replicas.why_not_led,
        image=image,
        now_ms=foundation.clock.now_ms,
        make_names=logs.make_names,
    )
    transactions = TransactionsTopic(
        config,
        creation,
        timers,
        allocate_producer_id=producer_ids.next_id,
        markers=markers,
        read_cold=cold_reads.run,
    )
    return Coordinators(offsets, transactions, markers)


def _new_uuid() -> str:
    """A random UUID in the usual spelling, as it stands in member ids; `uuid` costs a start-up 1.5 ms."""
    digits = random_uuid().hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
