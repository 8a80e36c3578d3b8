"""The peer of a connection: its address, who it is, and what log lines say of it."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.apis.context import ANONYMOUS
from pykafka_broker.apis.ports.connection import UNKNOWN_SOFTWARE
from pykafka_broker.network.connection_factory import Accepted
from pykafka_broker.system.host_text import java_address


class Peer:
    """The side of a connection that says whose it is; its `repr` names it in the log."""

    __slots__ = (
        "client_host",
        "client_id",
        "closes_because",
        "listener_name",
        "peer_host",
        "peer_port",
        "principal",
        "software",
    )

    def __init__(self, accepted: Accepted) -> None:
        self.listener_name = accepted.listener_name
        self.peer_host, self.peer_port = accepted.peer
        self.client_host = f"/{java_address(self.peer_host)}"
        self.software = UNKNOWN_SOFTWARE
        #: That of the newest request, unless it is too long to be kept; empty if there is none.
        self.client_id = ""
        #: The principal of the next request.
        self.principal = ANONYMOUS
        #: Why the connection closes; empty while there is no reason.
        self.closes_because = ""

    def __repr__(self) -> str:
        return f"{self.listener_name}-{self.peer_host}:{self.peer_port}"

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of log lines about the connection."""
        return {
            "listener": self.listener_name,
            "connection": repr(self),
            "client_id": self.client_id or None,
            "principal": self.principal,
            "client_software_name": self.software.name,
            "client_software_version": self.software.version,
        }
