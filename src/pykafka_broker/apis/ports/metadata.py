"""The cluster's metadata as this node knows it, and the addresses of brokers for clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from pykafka_broker.coordinator import ports

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection


class Metadata(ports.Metadata, Protocol):
    """Committed metadata, addresses and features."""

    @property
    def node_id(self) -> int:
        """The id of this node."""
        ...

    @property
    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        """Feature name -> (lowest, highest) level this node supports."""
        ...

    @property
    def kraft_version(self) -> int:
        """0 if the voters of the metadata quorum are fixed by the configuration."""
        ...

    def advertised(self, broker_id: int, connection: ClientConnection) -> tuple[str, int] | None:
        """Host and port under which the client of `connection` reaches a broker.

        None if that broker has no listener of this name.
        """
        ...

    def random_alive_broker_id(self) -> int:
        """An unfenced broker for clients to send controller requests to; -1 if there is none."""
        ...
