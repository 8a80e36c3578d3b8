"""The kinds of listeners of a node: for each, the service of such a listener.

Further kinds go here: a metrics page and a web console would be rows with their own connection factories
(`network/connection_factory.py`). The transport and the authentication come from the listener's security
protocol (`security/protocols.py`). `serves` of an endpoint names its row; `settings.endpoints` reads the
endpoints from the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import BROKER_LISTENER, CONTROLLER_LISTENER
from pykafka_broker.apis.ports.authorizer import Authorizer
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.apis.ports.quotas import Quotas
from pykafka_broker.broker.security.protocols import SecurityProtocol, security_of
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.listening import ListenerService
from pykafka_broker.network.shared import Shared

#: Makes the service of one listener. Raises ValueError if its security protocol is not offered.
ListenerKind = Callable[[ListenerEndpoint], ListenerService]

Ports = TypeVar("Ports")


def listener_kinds(
    shared: Shared,
    protocols: Mapping[str, SecurityProtocol],
    authorizer: Authorizer,
    quotas: Quotas,
    broker_ports: Callable[[], NodePorts],
    controller_ports: Callable[[], ControllerPorts],
) -> Mapping[str, ListenerKind]:
    """All kinds, by `serves` of their endpoints.

    Parts of the node are built after its listeners. `broker_ports` and `controller_ports` return the ports of
    handlers on listeners of that kind; they are called for each connection, and so after `Listeners.start`
    for that kind. A kind that needs other parts must get a closure over them too.

    Raises:
        NotImplementedError: a handler lacks a check that `authorizer` requires; for handlers on controller
            listeners this is raised when such a listener is made.
    """
    brokers = Dispatch(APIS, BROKER_LISTENER, authorizer, quotas)

    def service(
        endpoint: ListenerEndpoint, dispatch: Dispatch[Ports], ports: Callable[[], Ports]
    ) -> ListenerService:
        security = security_of(endpoint, protocols)
        return ListenerService(
            security.transport, KafkaConnections(shared, dispatch, security.authentication, ports)
        )

    def serve_brokers(endpoint: ListenerEndpoint) -> ListenerService:
        return service(endpoint, brokers, broker_ports)

    def serve_controllers(endpoint: ListenerEndpoint) -> ListenerService:
        # Imported late: most nodes have no such listener.
        from pykafka_broker.apis.controller_apis import CONTROLLER_APIS

        controllers = Dispatch(CONTROLLER_APIS, CONTROLLER_LISTENER, authorizer, quotas)
        return service(endpoint, controllers, controller_ports)

    return {BROKER_LISTENER: serve_brokers, CONTROLLER_LISTENER: serve_controllers}
