"""The common parts of the messages of the quorum: cluster, topic and partition, leader and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from pykafka_broker.protocol.errors import ErrorCode, error_of
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.raft.core.messages import Current
from pykafka_broker.raft.core.quorum import Address, Endpoints, ReplicaKey
from pykafka_broker.system.named_tuple import NamedTuple

PARTITION = 0


class Scope(NamedTuple):
    """The cluster of a message, and the listener whose endpoints it has.

    `listener` is the controller listener on which a request came; for requests of this replica it is the
    first of `controller.listener.names`.
    """

    cluster_id: str
    listener: str = "CONTROLLER"


class MalformedAnswer(Exception):
    """An unusable answer: not one partition, no leader epoch, or an error of the request as a whole."""


class NotAvailable(MalformedAnswer):
    """The node that was asked is stopping."""


Partition = TypeVar("Partition")


class Topic(Protocol[Partition]):
    """A topic of any of these messages."""

    partitions: list[Partition]


def request_error(cluster_id: str | None, scope: Scope, names: list[str], indexes: list[int]) -> ErrorCode:
    """The error of a request as a whole, in Kafka's order: another cluster, or not the one partition.

    `names` are those of the request's topics, `indexes` those of all their partitions.
    """
    if cluster_id is not None and cluster_id != scope.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if names != [METADATA_TOPIC] or indexes != [PARTITION]:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def other_cluster(asked: str | None, cluster_id: str) -> str:
    """The message for a request to another cluster."""
    return f'The given id "{asked}" doesn\'t match the cluster id "{cluster_id}"'


def only_partition(error_code: int, topics: Iterable[Topic[Partition]]) -> Partition:
    """The one partition of an answer.

    Raises:
        NotAvailable: the node is stopping.
        MalformedAnswer: there is none, or more.
    """
    if error_code == ErrorCode.BROKER_NOT_AVAILABLE:
        raise NotAvailable("it is stopping")
    if error_code:
        raise MalformedAnswer(f"the request as a whole was refused: {error_of(error_code).name}")
    partitions = [partition for topic in topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise MalformedAnswer(f"{len(partitions)} partitions in an answer about one")
    return partitions[0]


def optional_id(node_id: int) -> int | None:
    """A node id, None for -1."""
    return None if node_id < 0 else node_id


def told_leader(current: Current) -> int:
    """The leader's id in messages: -1 if unknown."""
    return -1 if current.leader_id is None else current.leader_id


def meant_voter(voter_id: int, directory_id: bytes) -> ReplicaKey | None:
    """The voter that a request is for; None in versions that do not name one."""
    voter = ReplicaKey(voter_id, directory_id)
    return None if voter == ReplicaKey(-1) else voter


class NodeEndpoint(Protocol):
    """An endpoint of a node in the KIP-853 versions of all answers."""

    node_id: int
    host: str
    port: int


Endpoint = TypeVar("Endpoint", bound=NodeEndpoint)


def leader_endpoints(current: Current, scope: Scope, make: Callable[..., Endpoint]) -> list[Endpoint]:
    """The address of the leader that an answer names, on the listener of the request, if it is known.

    `make` is the class of an endpoint in the message.
    """
    address = None if current.leader_id is None else current.endpoints.get(scope.listener)
    return [] if address is None else [make(node_id=current.leader_id, host=address[0], port=address[1])]


def current_of(epoch: int, leader_id: int, endpoints: Iterable[NodeEndpoint], scope: Scope) -> Current:
    """The epoch and leader of an answer, with the leader's address if it has one."""
    known: dict[str, Address] = {}
    for endpoint in endpoints:
        if endpoint.node_id == leader_id:
            known[scope.listener] = (endpoint.host, endpoint.port)
    return Current(epoch, optional_id(leader_id), known)


class Listener(Protocol):
    """A listener of a node in a request."""

    name: str
    host: str
    port: int


def endpoints_of(listeners: Iterable[Listener]) -> Endpoints:
    """The endpoints of a node by the names of its listeners."""
    return {listener.name: (listener.host, listener.port) for listener in listeners}
