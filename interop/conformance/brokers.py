"""Brokers that are none: what the conversations of the listener of controllers say as other brokers."""

from __future__ import annotations

import zlib
from typing import Any

from interop.conformance.talk import Talk
from pykafka_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from pykafka_broker.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest

#: As broker 1 of Apache Kafka 4.3 registers.
FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
#: These conversations have nodes of their own: further brokers would be seen by others.
ELSEWHERE = {"broker.session.timeout.ms": "30000"}


def broker_of(talk: Talk) -> int:
    """The id of the conversation's own broker."""
    return 1_000 + zlib.crc32(talk.name("broker").encode()) % 1_000_000


def uuid_of(talk: Talk, label: str) -> bytes:
    """An id of the conversation's own: the same with both nodes."""
    return label.encode().ljust(8, b"-")[:8] + zlib.crc32(talk.name(label).encode()).to_bytes(8, "big")


def cluster_id(talk: Talk) -> str:
    """The id of the cluster."""
    asking = DescribeClusterRequest(include_cluster_authorized_operations=False)
    text: str = talk.do(asking, version=2).cluster_id
    return text


def registering(talk: Talk, **details: Any) -> BrokerRegistrationRequest:
    """The registration of the conversation's own broker."""
    values: dict[str, Any] = {
        "broker_id": broker_of(talk),
        "cluster_id": details.pop("cluster_id", None) or cluster_id(talk),
        "incarnation_id": uuid_of(talk, "life"),
        "listeners": [Listener(name="PLAINTEXT", host="elsewhere", port=9092, security_protocol=0)],
        "features": [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in FEATURES.items()
        ],
        "rack": None,
        "log_dirs": [uuid_of(talk, "dir")],
        **details,
    }
    return BrokerRegistrationRequest(**values)


def beating(talk: Talk, epoch: int, offset: int, **details: Any) -> BrokerHeartbeatRequest:
    """A heartbeat of the conversation's own broker."""
    values: dict[str, Any] = {
        "broker_id": broker_of(talk),
        "broker_epoch": epoch,
        "current_metadata_offset": offset,
        "want_fence": False,
        "want_shut_down": False,
        **details,
    }
    return BrokerHeartbeatRequest(**values)


def registered(talk: Talk, controllers: Talk, **details: Any) -> int:
    """Register the conversation's own broker; its epoch."""
    epoch: int = controllers.do(registering(talk, **details), version=4).broker_epoch
    return epoch


def unfenced(talk: Talk, controllers: Talk, **details: Any) -> int:
    """Register the conversation's own broker and let it be unfenced; its epoch."""
    epoch = registered(talk, controllers, **details)
    controllers.do(beating(talk, epoch, epoch), version=2)
    return epoch


def leave(talk: Talk, controllers: Talk, epoch: int) -> None:
    """Fence the conversation's own broker: a node that stops does not wait for it then."""
    controllers.do(beating(talk, epoch, epoch, want_fence=True), version=2)


def topic_on(talk: Talk, *replicas: int) -> bytes:
    """The id of a new topic whose one partition has these replicas."""
    name = talk.name()
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    new = CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=[]
    )
    created = talk.do(CreateTopicsRequest(topics=[new], timeout_ms=10_000, validate_only=False))
    talk.created.append(name)
    topic_id: bytes = created.topics[0].topic_id
    return topic_id
