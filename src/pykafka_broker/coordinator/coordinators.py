"""The coordinators of one node, each with its service, its settings and its topic.

This is where they are built. The broker tells them which partitions the node leads, and brings new
metadata and settings; handlers ask the services.
"""

from __future__ import annotations

import logging
from functools import partial

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.coordinator_topic import CoordinatorTopic
from pykafka_broker.coordinator.end_offsets import EndOffsets
from pykafka_broker.coordinator.groups.service import GroupService
from pykafka_broker.coordinator.groups.settings import GroupCoordinatorSettings, coordinator_config
from pykafka_broker.coordinator.groups.share_work import ShareWorker
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.ports import CoordinatorPorts
from pykafka_broker.coordinator.share.persister import NO_COORDINATOR, Persister, ShareMap
from pykafka_broker.coordinator.share.remote_states import RemoteStates
from pykafka_broker.coordinator.share.service import ShareService
from pykafka_broker.coordinator.share.settings import ShareCoordinatorSettings, share_config
from pykafka_broker.coordinator.topic_creation import TopicCreation
from pykafka_broker.coordinator.topic_log import TopicLog
from pykafka_broker.coordinator.transactions.local_markers import LocalMarkers
from pykafka_broker.coordinator.transactions.marker_routes import MarkerRoutes
from pykafka_broker.coordinator.transactions.participation import TransactionParticipation
from pykafka_broker.coordinator.transactions.remote_markers import RemoteMarkers
from pykafka_broker.coordinator.transactions.remote_participation import RemoteParticipation
from pykafka_broker.coordinator.transactions.service import TransactionService
from pykafka_broker.coordinator.transactions.settings import (
    TransactionCoordinatorSettings,
    transaction_config,
)
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.raft.format import random_uuid
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition


class Coordinators:
    """The group coordinator, the transaction coordinator and the share coordinator of a node."""

    def __init__(self, node: CoordinatorPorts, creation: TopicCreation) -> None:
        config = node.configs.current
        timers = WallTimers(node.clock)
        kept = partial(CoordinatorTopic, creation=creation, cold_reads=node.cold_reads)

        share_log = TopicLog(SHARE_STATE_TOPIC, timers.now_ms)
        self.shares = ShareService(
            share_config(config, 0),
            share_log,
            timers,
            codec=Codec(config["share.coordinator.state.topic.compression.codec"]),
            write_timeout_ms=config["share.coordinator.write.timeout.ms"],
        )
        self.share_state_topic = kept(
            share_log,
            self.shares.shards,
            ShareCoordinatorSettings(self.shares, config),
            logger=logging.getLogger("kafka.coordinator.share.ShareCoordinatorService"),
        )
        #: Asks the share coordinators of the cluster.
        self.persister = Persister(
            self.shares,
            RemoteStates(node.others.share_states, timers.now_ms),
            ShareMap(
                node.node_id,
                partial(_share_coordinator, self.shares, node),
                lambda topic_id: node.metadata.image.partition_count(topic_id),
                self.share_state_topic.ensure,
            ),
            timers,
        )
        offsets_log = TopicLog(OFFSETS_TOPIC, timers.now_ms)
        end_offsets = EndOffsets(node.node_id, node.metadata, node.partitions, node.others.questions, timers)
        self.groups = GroupService(
            coordinator_config(config, ClusterImage()),
            offsets_log,
            timers,
            new_uuid=_new_uuid,
            run_blocking=node.threads.run_blocking,
            describable=node.describable_topics,
            share_worker=ShareWorker(self.persister, end_offsets.latest, timers.now_ms),
            tell=node.tell,
        )
        self.offsets_topic = kept(
            offsets_log,
            self.groups.shards,
            GroupCoordinatorSettings(self.groups, config),
            logger=logging.getLogger("kafka.coordinator.group.GroupCoordinator"),
        )

        timeout_ms = config["request.timeout.ms"]
        #: Writes the markers of coordinators on other nodes; those retry while a partition is being loaded.
        self.markers = LocalMarkers(self.groups, node.partitions, timers.now_ms, timeout_ms)
        own_markers = LocalMarkers(_LoadedOffsets(self.groups), node.partitions, timers.now_ms, timeout_ms)
        transactions_log = TopicLog(TRANSACTIONS_TOPIC, timers.now_ms)
        self.transactions = TransactionService(
            transaction_config(config, 0),
            transactions_log,
            timers,
            allocate_producer_id=node.producer_ids.next_id,
            markers=MarkerRoutes(
                node.node_id, node.metadata, own_markers, RemoteMarkers(node.others.markers)
            ),
            tell=node.tell,
        )
        self.participation = TransactionParticipation(
            self.transactions,
            partial(_transaction_coordinator, self.transactions, node),
            RemoteParticipation(node.others.questions, timers.now_ms),
        )
        self.transactions_topic = kept(
            transactions_log,
            self.transactions.shards,
            TransactionCoordinatorSettings(self.transactions, config),
            logger=logging.getLogger("kafka.coordinator.transaction.TransactionStateManager"),
        )

        topics = self.offsets_topic, self.transactions_topic, self.share_state_topic
        self._topics = {topic.name: topic for topic in topics}

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        for topic in self._topics.values():
            topic.reconfigure(config)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the metadata."""
        for topic in self._topics.values():
            topic.on_image(old, new)
        share_topic = old.topics.get(SHARE_STATE_TOPIC), new.topics.get(SHARE_STATE_TOPIC)
        if share_topic[0] is not share_topic[1] or old.brokers is not new.brokers:
            self.persister.look_again()

    def lead(self, partition: LeadingReplica) -> None:
        """Load a partition that this node leads from now on, if a coordinator keeps its state there."""
        if (topic := self._topics.get(partition.log.topic)) is not None:
            topic.lead(partition)

    def follow(self, partition: Partition, leader: int) -> None:
        """Nothing to do: coordinators serve only partitions that this node leads."""

    def resign(self, partition: Partition) -> None:
        """Stop serving a partition."""
        if (topic := self._topics.get(partition.topic)) is not None:
            topic.resign(partition)

    async def loaded(self) -> None:
        """Return when no partition is being loaded."""
        for topic in self._topics.values():
            await topic.loaded()

    def refuse(self) -> None:
        """Answer every request that waits, and all later ones, with NOT_COORDINATOR."""
        for topic in self._topics.values():
            topic.refuse()

    async def close(self) -> None:
        """Serve nothing any more; nothing reads the logs when this returns."""
        for topic in reversed(self._topics.values()):
            await topic.close()


class _LoadedOffsets:
    """Writes markers into a partition of `__consumer_offsets` once it has been loaded."""

    def __init__(self, groups: GroupService) -> None:
        self._groups = groups

    async def complete_transaction(self, partition: int, marker: Marker) -> ErrorCode:
        await self._groups.shards.loaded(partition)
        return await self._groups.complete_transaction(partition, marker)


def _transaction_coordinator(
    transactions: TransactionService, node: CoordinatorPorts, transactional_id: str
) -> int | None:
    """The broker that coordinates an id; None if it is this node, or if `__transaction_state` is missing."""
    try:
        partition = transactions.partition_for(transactional_id)
    except KafkaError:
        return None
    leader = node.metadata.image.leader_of(TRANSACTIONS_TOPIC, partition)
    return None if leader == node.node_id else leader


def _share_coordinator(shares: ShareService, node: CoordinatorPorts, key: SharePartitionKey) -> int:
    """The broker that coordinates a share partition; NO_COORDINATOR without the topic or a leader."""
    try:
        partition = shares.partition_for(key)
    except KafkaError:
        return NO_COORDINATOR
    return node.metadata.image.leader_of(SHARE_STATE_TOPIC, partition)


def _new_uuid() -> str:
    """A random UUID in the usual spelling, for member ids; importing `uuid` takes 1.5 ms at start-up."""
    digits = random_uuid().hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
