"""The configuration of a listener: its address, its advertised address, and the limits of its connections."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.system.named_tuple import NamedTuple

UNLIMITED = 2**31 - 1
#: The kind of a listener for metrics and health, beside those that speak Kafka (`apis/api.py`).
METRICS_LISTENER = "metrics"


class ListenerEndpoint(NamedTuple):
    """The bound and the advertised address of a listener, and its own limits."""

    name: str
    #: "" is every address of the machine.
    host: str
    #: 0 lets the system choose.
    port: int
    security_protocol: str = "PLAINTEXT"
    advertised_host: str | None = None
    advertised_port: int | None = None
    #: The listener between brokers, or one of controllers or of metrics. The broker's `max.connections` and
    #: `max.connection.creation.rate` do not count connections of other listeners against it.
    is_privileged: bool = False
    #: `max.connections` of this listener; the broker's value if the listener sets none. The broker's
    #: value limits a privileged listener, too.
    max_connections: int = UNLIMITED
    #: This listener's `max.connection.creation.rate` per second, likewise.
    max_connection_creation_rate: int = UNLIMITED
    #: The kind of listener; the broker has a connection factory for each kind.
    serves: str = BROKER_LISTENER

    @property
    def is_wildcard(self) -> bool:
        """True if the host stands for every address of the machine, so a client cannot connect to it."""
        return self.host in ("", "0.0.0.0", "::")

    def is_bound_as(self, other: ListenerEndpoint) -> bool:
        """True if `other` needs the same sockets."""
        return (self.host, self.port, self.security_protocol) == (
            other.host,
            other.port,
            other.security_protocol,
        )


class ListenerLimits(NamedTuple):
    """The limits of connections; fields are Kafka's keys."""

    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    #: Connections per second.
    max_connection_creation_rate: int = UNLIMITED
    #: Address to count, already resolved.
    max_connections_per_ip_overrides: Mapping[str, int] = {}
    socket_listen_backlog_size: int = 50
    #: -1 leaves the size, and its tuning, to the system.
    socket_send_buffer_bytes: int = -1
    socket_receive_buffer_bytes: int = -1
