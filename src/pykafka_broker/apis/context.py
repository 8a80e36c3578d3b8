"""The context of a handler: the facts of its request, and the ports of the node that serves it.

A `Context` is made by the connection for each request. Handlers get everything through it, so that they can
be run against any ports a test puts together (`ports/`). Which ports those are depends on the listeners on
which an API is served:

* `RequestContext`: those of clients and of other brokers;
* `ControllerContext`: those of controllers;
* `AdministrationContext`: both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pykafka_broker.apis.ports.administration import AdministrationPorts
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.apis.ports.node import NodePorts

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection

Ports = TypeVar("Ports", covariant=True)


class Context(Generic[Ports]):
    """One request's surroundings.

    `version` is the request's API version; `client_id` may be None; `principal` is the authenticated user
    ("User:ANONYMOUS" on a plain connection).
    """

    __slots__ = ("api_key", "client_id", "connection", "correlation_id", "node", "principal", "version")

    def __init__(
        self,
        node: Ports,
        connection: ClientConnection,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        principal: str = "User:ANONYMOUS",
    ) -> None:
        self.node = node
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.principal = principal


RequestContext = Context[NodePorts]
ControllerContext = Context[ControllerPorts]
AdministrationContext = Context[AdministrationPorts]
