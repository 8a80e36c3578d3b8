"""The context of a handler: the facts of its request, and the ports of the node that serves it.

The connection makes a `Context` for each request. Handlers get everything through it, so that tests can run
them with any ports (`ports/`). The ports depend on the listeners that serve an API:

* `RequestContext`: listeners for clients and other brokers;
* `ControllerContext`: listeners for controllers;
* `AdministrationContext`: both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from pykafka_broker.apis.ports.administration import AdministrationPorts
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.controller.channel import ChangeRequester
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.system.wording import client_in_words

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection

Ports = TypeVar("Ports", covariant=True)

#: The principal of a peer that has not authenticated.
ANONYMOUS = "User:ANONYMOUS"


class Context(Generic[Ports]):
    """The context of one request.

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
        principal: str = ANONYMOUS,
    ) -> None:
        self.node = node
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.principal = principal

    @property
    def client_host(self) -> str:
        """The client's address as Kafka shows it in group descriptions: "/127.0.0.1"."""
        return self.connection.client_host

    @property
    def requester(self) -> ChangeRequester:
        """The principal and the address of the client, for the log of the controller."""
        return ChangeRequester(self.principal, self.client_host.removeprefix("/"))

    @property
    def in_words(self) -> str:
        """The client at the beginning of a sentence."""
        return client_in_words(self.client_id, self.principal, self.client_host)

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of log lines about the request."""
        return {
            "api": API_NAMES[self.api_key],
            "api_version": self.version,
            "correlation_id": self.correlation_id,
            **self.connection.log_fields,
            "client_id": self.client_id,
            "principal": self.principal,
        }


class ForwardedContext(Context[Ports]):
    """The context of a request that a broker has forwarded: `client_host` is that of the broker's client."""

    __slots__ = ("_client_host",)

    def __init__(
        self,
        node: Ports,
        connection: ClientConnection,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        principal: str,
        client_host: str,
    ) -> None:
        super().__init__(node, connection, api_key, version, correlation_id, client_id, principal)
        self._client_host = client_host

    @property
    def client_host(self) -> str:
        """The address of the broker's client."""
        return self._client_host


RequestContext = Context[NodePorts]
ControllerContext = Context[ControllerPorts]
AdministrationContext = Context[AdministrationPorts]
