"""The connections of a listener that speaks Kafka's protocol, to clients, other brokers or controllers."""

from __future__ import annotations

from pykafka_broker.network.authentication import Authentication
from pykafka_broker.network.connection import Connection
from pykafka_broker.network.connection_factory import Accepted, NewConnection
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.shared import Shared


class KafkaConnections:
    """The connection factory of one listener; `dispatch` has the APIs of its kind."""

    def __init__(self, shared: Shared, dispatch: Dispatch, authentication: Authentication) -> None:
        self._shared = shared
        self._dispatch = dispatch
        self._authentication = authentication

    def __call__(self, accepted: Accepted) -> NewConnection:
        connection = Connection(self._shared, self._dispatch, self._authentication, accepted)
        return NewConnection(connection, connection)
