"""The kinds of listeners of a node: for each, the service of such a listener.

Further kinds go here: a web console would be a row with its own connection factory
(`network/connection_factory.py`). The transport and the authentication come from the listener's security
protocol (`security/protocols.py`). `serves` of an endpoint names its row; `settings.endpoints` reads the
endpoints from the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import BROKER_LISTENER, CONTROLLER_LISTENER
from pykafka_broker.apis.ports.authorizer import Authorizer
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.apis.ports.quotas import Quotas
from pykafka_broker.broker.security.protocols import SecurityProtocol, security_of
from pykafka_broker.config import ConfigError
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import METRICS_LISTENER, ListenerEndpoint
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.listening import ListenerService
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import Plaintext

if TYPE_CHECKING:
    from pykafka_broker.metrics.node_parts import NodeParts

#: Makes the service of one listener. Raises ValueError if its security protocol is not offered.
ListenerKind = Callable[[ListenerEndpoint], ListenerService]

Ports = TypeVar("Ports")


class PortsToCome(Generic[Ports]):
    """The ports of the handlers on one kind of listener.

    Clients queue up at a listener before the ports exist: a broker registers its listeners, and waits for the
    controller, before it has all its parts. So `give` is called after the listeners are made, and before they
    are started.
    """

    def __init__(self) -> None:
        self._given: Ports | None = None

    def give(self, ports: Ports) -> None:
        """The ports for connections from now on."""
        self._given = ports

    def __call__(self) -> Ports:
        """The ports for a new connection.

        Raises:
            RuntimeError: the listener was started before they were given.
        """
        if self._given is None:
            raise RuntimeError("a listener was started before the ports of its handlers exist")
        return self._given


class HandlerPorts:
    """The ports of handlers, by the kind of their listener; a metrics listener reads the node's parts."""

    def __init__(self) -> None:
        self.broker: PortsToCome[NodePorts] = PortsToCome()
        self.controller: PortsToCome[ControllerPorts] = PortsToCome()
        self.metrics: PortsToCome[NodeParts] = PortsToCome()


def listener_kinds(
    shared: Shared,
    protocols: Mapping[str, SecurityProtocol],
    authorizer: Authorizer,
    quotas: Quotas,
    ports: HandlerPorts,
    unlisted: Container[int] = (),
) -> Mapping[str, ListenerKind]:
    """All kinds, by `serves` of their endpoints; ApiVersions does not list the keys in `unlisted`.

    A further kind with parts that are built later must get them as `ports` comes.

    Raises:
        NotImplementedError: a handler lacks a check that `authorizer` requires; for handlers on controller
            listeners this is raised when such a listener is made.
    """
    brokers = Dispatch(APIS, BROKER_LISTENER, authorizer, quotas, unlisted, shared.times)

    def service(
        endpoint: ListenerEndpoint, dispatch: Dispatch[Ports], of_kind: PortsToCome[Ports]
    ) -> ListenerService:
        security = security_of(endpoint, protocols)
        return ListenerService(
            security.transport, KafkaConnections(shared, dispatch, security.authentication, of_kind)
        )

    def serve_brokers(endpoint: ListenerEndpoint) -> ListenerService:
        return service(endpoint, brokers, ports.broker)

    def serve_controllers(endpoint: ListenerEndpoint) -> ListenerService:
        # Imported late: most nodes have no such listener.
        from pykafka_broker.apis.controller_apis import CONTROLLER_APIS

        controllers = Dispatch(CONTROLLER_APIS, CONTROLLER_LISTENER, authorizer, quotas, times=shared.times)
        return service(endpoint, controllers, ports.controller)

    def serve_metrics(endpoint: ListenerEndpoint) -> ListenerService:
        # Imported late: most nodes have no such listener.
        from pykafka_broker.metrics.http_connection import HttpConnections
        from pykafka_broker.metrics.process import begin

        try:
            begin()
        except ImportError:
            raise ConfigError(
                "metrics.listeners needs prometheus-client: pip install 'pykafka-broker[metrics]'"
            ) from None
        return ListenerService(Plaintext(), HttpConnections(shared, ports.metrics))

    return {
        BROKER_LISTENER: serve_brokers,
        CONTROLLER_LISTENER: serve_controllers,
        METRICS_LISTENER: serve_metrics,
    }
