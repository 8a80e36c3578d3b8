"""The ports of handlers on listeners of controllers (Kafka's ControllerApis)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.administration import ClusterMetadata
    from pykafka_broker.apis.ports.authorizer import Authorizer
    from pykafka_broker.apis.ports.connection import ClientConnection
    from pykafka_broker.apis.ports.quotas import Quotas
    from pykafka_broker.config import DynamicConfig
    from pykafka_broker.controller.channel import ClusterAdministration
    from pykafka_broker.protocol.buffers import Buffer
    from pykafka_broker.raft.core.log_view import SnapshotId
    from pykafka_broker.raft.core.messages import Current, Request
    from pykafka_broker.raft.core.quorum import Endpoints


class NodeConnections(Protocol):
    """The connections of brokers and of other controllers to this one."""

    def note(self, node_id: int, connection: ClientConnection, *, sends_heartbeats: bool = False) -> None:
        """A node sends its own requests on `connection`: while that is open, the node's process lives."""
        ...


class Quorum(Protocol):
    """The quorum behind the metadata log."""

    @property
    def leader_id(self) -> int:
        """The id of its leader; -1 while none is known."""
        ...

    @property
    def current(self) -> Current:
        """The current epoch and its leader, as known to this replica."""
        ...

    @property
    def voter_endpoints(self) -> Mapping[int, Endpoints]:
        """Where the voters are reached, by their ids, as known to this replica."""
        ...

    def request(self, request: Request) -> Awaitable[Any]:
        """The answer of this replica to a request of another replica or of an administrator.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the replica has stopped.
        """
        ...

    def read(self, offset: int, max_bytes: int) -> Awaitable[Buffer]:
        """The batches of the metadata log from the one with `offset` on, at least one."""
        ...

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> Awaitable[bytes]:
        """A part of the file of a snapshot.

        Raises:
            FileNotFoundError: it has been removed.
        """
        ...


class ControllerPorts(NamedTuple):
    """The ports, filled by the composition root before the replica of the metadata log starts: handlers serve
    even without a leader of the quorum.
    """

    configs: DynamicConfig
    metadata: ClusterMetadata
    controller: ClusterAdministration
    connections: NodeConnections
    quorum: Quorum
    authorizer: Authorizer
    quotas: Quotas
