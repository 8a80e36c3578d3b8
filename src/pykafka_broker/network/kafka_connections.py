"""The connections of a listener that speaks Kafka's protocol, to clients, other brokers or controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pykafka_broker.network.connection import Connection
from pykafka_broker.network.connection_factory import Accepted, NewConnection
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.identity import Authentication
from pykafka_broker.network.shared import Shared

Ports = TypeVar("Ports")


class KafkaConnections(Generic[Ports]):
    """The connection factory of one listener.

    `dispatch` has the APIs of its kind, and `node` returns the ports of their handlers. It is called for
    each connection, so the node may be built after the listener and before its first connection.
    """

    def __init__(
        self,
        shared: Shared,
        dispatch: Dispatch[Ports],
        authentication: Authentication,
        node: Callable[[], Ports],
    ) -> None:
        self._shared = shared
        #: The APIs that it serves.
        self.dispatch = dispatch
        self.authentication = authentication
        self._node = node

    def __call__(self, accepted: Accepted) -> NewConnection:
        connection = Connection(self._shared, self._node(), self.dispatch, self.authentication, accepted)
        return NewConnection(connection, connection)
