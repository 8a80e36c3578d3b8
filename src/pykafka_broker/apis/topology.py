"""The description of brokers, topics and partitions for clients, shared by Metadata, DescribeTopicPartitions
and DescribeCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME, AclResourceType
from pykafka_broker.cluster.partitions import has_online_directory
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.cluster.image import BrokerRegistration, PartitionRegistration

NO_LEADER_ID = -1
NO_TOPIC_ID = bytes(16)


class LeaderView(NamedTuple):
    """The leader of a partition for the clients of one listener, or the error if no leader can be named."""

    error: ErrorCode
    leader_id: int
    offline_replicas: list[int]


def topic_operations(name: str, ctx: RequestContext) -> int:
    """The operations that the client may carry out on a topic, whether or not it exists, as a bit field."""
    return ctx.node.authorizer.operations(ctx, AclResourceType.TOPIC, name)


def cluster_operations(ctx: RequestContext) -> int:
    """The operations that the client may carry out on the cluster, as a bit field."""
    return ctx.node.authorizer.operations(ctx, AclResourceType.CLUSTER, CLUSTER_NAME)


def alive_brokers(ctx: RequestContext) -> list[tuple[BrokerRegistration, str, int]]:
    """Unfenced brokers with the address a client of this listener reaches them at."""
    found = []
    for broker in ctx.node.metadata.image.brokers.values():
        address = None if broker.fenced else ctx.node.metadata.advertised(broker.broker_id, ctx.connection)
        if address is not None:
            found.append((broker, *address))
    return found


def leadership(partition: PartitionRegistration, ctx: RequestContext) -> LeaderView:
    """Kafka's rule: a leader that is fenced or lacks the listener cannot be named, but the partition is
    listed.
    """
    brokers = ctx.node.metadata.image.brokers
    offline = [
        replica
        for replica in partition.replicas
        if (broker := brokers.get(replica)) is None
        or broker.fenced
        or ctx.node.metadata.advertised(replica, ctx.connection) is None
        or not has_online_directory(broker, partition)
    ]
    if partition.leader not in brokers:
        return LeaderView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER_ID, offline)
    if ctx.node.metadata.advertised(partition.leader, ctx.connection) is None:
        return LeaderView(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER_ID, offline)
    return LeaderView(ErrorCode.NONE, partition.leader, offline)
