"""Ports of handlers that no single part of the node implements."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Mapping

from pykafka_broker.apis.ports.connection import ClientConnection
from pykafka_broker.cluster.features import KRAFT_VERSION_LEVEL, NODE_FEATURES
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.coordination.coordinator_topic import CoordinatorTopic
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.raft.storage import RaftStorage


class PublishedMetadata:
    """The published metadata."""

    supported_features: Mapping[str, tuple[int, int]] = NODE_FEATURES

    def __init__(self, node_id: int, publisher: MetadataPublisher, storage: RaftStorage) -> None:
        self.node_id = node_id
        self._publisher = publisher
        self._storage = storage

    @property
    def kraft_version(self) -> int:
        """0 where the metadata log names no voters."""
        return 0 if self._storage.static_voters else KRAFT_VERSION_LEVEL

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self._publisher.image


class NodeMetadata(PublishedMetadata):
    """The published metadata, and this node's listeners."""

    def __init__(
        self, node_id: int, publisher: MetadataPublisher, storage: RaftStorage, listeners: Listeners
    ) -> None:
        super().__init__(node_id, publisher, storage)
        self._listeners = listeners

    def advertised(self, broker_id: int, connection: ClientConnection) -> tuple[str, int] | None:
        """Host and port under which a client reaches a broker; None if it has no such listener."""
        if broker_id == self.node_id:
            return self._listeners.advertised_for(connection)
        broker = self.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.listeners.get(connection.listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def random_alive_broker_id(self) -> int:
        """An unfenced broker; -1 if there is none."""
        alive = [broker.broker_id for broker in self.image.brokers.values() if not broker.fenced]
        return random.choice(alive) if alive else -1


class LocalQuorum:
    """The quorum of which this node is the only voter."""

    def __init__(self, node_id: int, role: ControllerRole) -> None:
        self._node_id = node_id
        self._role = role

    @property
    def leader_id(self) -> int:
        """The id of this node, or -1 before it has elected itself."""
        return self._node_id if self._role.is_active else -1


class TopicsOnDemand:
    """Topics that clients ask for, and those of the coordinators."""

    def __init__(
        self, creation: TopicCreation, offsets: CoordinatorTopic, transactions: CoordinatorTopic
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._creation = creation

    def create_missing(self, names: Iterable[str]) -> Awaitable[None]:
        """Create missing topics with the broker's defaults."""
        return self._creation.create_missing(names)

    def ensure_offsets_topic(self) -> Awaitable[bool]:
        """Create `__consumer_offsets` if it is missing; True when it is served."""
        return self._offsets.ensure()

    def ensure_transactions_topic(self) -> Awaitable[bool]:
        """The same for `__transaction_state`."""
        return self._transactions.ensure()
