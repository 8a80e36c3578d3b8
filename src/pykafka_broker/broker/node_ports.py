"""Ports of handlers that no single part of the node implements: each brings some of them together."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial

from pykafka_broker.apis.ports.connection import ClientConnection
from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.coordinator.coordinator_topic import CoordinatorTopic
from pykafka_broker.coordinator.groups.core.streams.topology.declared import InternalTopic
from pykafka_broker.coordinator.topic_creation import TopicCreation
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.metadata.replica import MetadataReplica
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.messages import Answer, Current, Request
from pykafka_broker.raft.core.quorum import Endpoints
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.system.named_tuple import NamedTuple


class PublishedMetadata:
    """The published metadata."""

    supported_features: Mapping[str, tuple[int, int]] = NODE_FEATURES

    def __init__(self, node_id: int, replica: MetadataReplica) -> None:
        self.node_id = node_id
        self._publisher = replica.publisher
        self._host = replica.host

    @property
    def kraft_version(self) -> int:
        """0 if the metadata log names no voters."""
        return self._host.kraft_version

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self._publisher.image


class NodeMetadata(PublishedMetadata):
    """The published metadata, and this node's listeners."""

    def __init__(self, node_id: int, replica: MetadataReplica, listeners: Listeners) -> None:
        super().__init__(node_id, replica)
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


class ReplicaQuorum:
    """The quorum of the metadata log, as this node's replica knows it."""

    def __init__(self, replica: MetadataReplica, storage: RaftStorage, run_blocking: RunBlocking) -> None:
        self._host = replica.host
        self._storage = storage
        self._run_blocking = run_blocking

    @property
    def leader_id(self) -> int:
        """The id of the leader; -1 while none is known."""
        return self._host.leader_id

    @property
    def current(self) -> Current:
        """The epoch and its known leader."""
        return self._host.current

    @property
    def voter_endpoints(self) -> Mapping[int, Endpoints]:
        """Where the voters are reached, by their ids."""
        return self._host.voter_endpoints

    def request(self, request: Request) -> Awaitable[Answer]:
        """Return the replica's answer to a request of another replica, or of an administrator."""
        return self._host.request(request)

    def read(self, offset: int, max_bytes: int) -> Awaitable[Buffer]:
        """Return the batches of the metadata log from the one with `offset` on: at least one."""
        return self._run_blocking(partial(self._storage.read_for_replica, offset, max_bytes))

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> Awaitable[bytes]:
        """Return a part of the file of a snapshot."""
        return self._run_blocking(partial(self._storage.read_snapshot_part, snapshot_id, position, max_bytes))


class TopicsOnDemand(NamedTuple):
    """Creates topics that clients ask for, and those of the coordinators."""

    creation: TopicCreation
    offsets: CoordinatorTopic
    transactions: CoordinatorTopic
    share_state: CoordinatorTopic

    def create_missing(self, names: Iterable[str]) -> Awaitable[None]:
        """Create missing topics with the broker's defaults."""
        return self.creation.create_missing(names)

    def create_for_streams(self, topics: Iterable[InternalTopic], *, errors_for_ms: int) -> Mapping[str, str]:
        """Begin to create missing topics that an application needs."""
        return self.creation.create_for_streams(topics, errors_for_ms=errors_for_ms)

    def ensure_offsets_topic(self) -> Awaitable[bool]:
        """Create `__consumer_offsets` if it is missing; True when it is served."""
        return self.offsets.ensure()

    def ensure_transactions_topic(self) -> Awaitable[bool]:
        """The same for `__transaction_state`."""
        return self.transactions.ensure()

    def ensure_share_state_topic(self) -> Awaitable[bool]:
        """The same for `__share_group_state`."""
        return self.share_state.ensure()
