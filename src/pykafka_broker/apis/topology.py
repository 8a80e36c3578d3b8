"""The description of brokers, topics and partitions for clients, shared by Metadata, DescribeTopicPartitions
and DescribeCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.denials import may_on_cluster
from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME, AclOperation, AclResourceType
from pykafka_broker.cluster.image import NO_LEADER, BrokerRegistration, PartitionRegistration
from pykafka_broker.cluster.replica_directories import has_online_directory
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, RequestContext


class LeaderView(NamedTuple):
    """The leader of a partition for the clients of one listener, or the error if no leader can be named."""

    error: ErrorCode
    leader_id: int
    offline_replicas: list[int]


def topic_operations(name: str, ctx: RequestContext) -> int:
    """The operations that the client may carry out on a topic, whether or not it exists, as a bit field."""
    return ctx.node.authorizer.operations(ctx, AclResourceType.TOPIC, name)


def cluster_operations(ctx: AdministrationContext) -> int:
    """The operations that the client may carry out on the cluster; 0 if it may not describe the cluster."""
    if not may_on_cluster(ctx, AclOperation.DESCRIBE):
        return 0
    return ctx.node.authorizer.operations(ctx, AclResourceType.CLUSTER, CLUSTER_NAME)


def alive_brokers(ctx: RequestContext) -> list[tuple[BrokerRegistration, str, int]]:
    """Unfenced brokers in the order of their ids, with their addresses on the client's listener."""
    found = []
    for _, broker in sorted(ctx.node.metadata.image.brokers.items()):
        address = None if broker.fenced else ctx.node.metadata.advertised(broker.broker_id, ctx.connection)
        if address is not None:
            found.append((broker, *address))
    return found


class LeaderViews:
    """Partitions as seen from the listener of one request, with the current image.

    Each broker is looked up only once.
    """

    __slots__ = ("_brokers", "_connection", "_metadata", "_reachable")

    def __init__(self, ctx: RequestContext) -> None:
        self._metadata = ctx.node.metadata
        self._connection = ctx.connection
        self._brokers = ctx.node.metadata.image.brokers
        #: Broker -> whether it has an address on this listener.
        self._reachable: dict[int, bool] = {}

    def of(self, partition: PartitionRegistration) -> LeaderView:
        """The view of a partition, without a leader if that is unknown or lacks the listener, as in Kafka."""
        brokers = self._brokers
        offline = [
            replica
            for replica in partition.replicas
            if (broker := brokers.get(replica)) is None
            or broker.fenced
            or not self._is_reachable(replica)
            or not has_online_directory(broker, partition)
        ]
        if partition.leader not in brokers:
            return LeaderView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline)
        if not self._is_reachable(partition.leader):
            return LeaderView(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER, offline)
        return LeaderView(ErrorCode.NONE, partition.leader, offline)

    def _is_reachable(self, broker_id: int) -> bool:
        known = self._reachable.get(broker_id)
        if known is None:
            address = self._metadata.advertised(broker_id, self._connection)
            known = self._reachable[broker_id] = address is not None
        return known
