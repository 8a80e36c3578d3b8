"""The connection of a request, as handlers see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.sasl import SaslConversation


class Software(NamedTuple):
    """What a client says that it is (KIP-511)."""

    name: str
    version: str


UNKNOWN_SOFTWARE = Software("unknown", "unknown")


class ServedApi(Protocol):
    """A row of ApiVersions."""

    @property
    def key(self) -> int: ...

    @property
    def advertised_min_version(self) -> int: ...

    @property
    def max_version(self) -> int: ...


class ClientConnection(Protocol):
    """One client of one listener."""

    listener_name: str
    #: The peer's address without port, as Kafka shows it in group descriptions: "/127.0.0.1".
    client_host: str
    peer_port: int
    #: As the client's newest ApiVersions request says; unknown before, and from a client of older versions.
    software: Software
    #: None on a listener without SASL.
    sasl: SaslConversation | None

    @property
    def local_address(self) -> tuple[str, int]:
        """The address at which the peer reached this node."""
        ...

    @property
    def listed_apis(self) -> Iterable[ServedApi]:
        """The APIs that ApiVersions lists of those that the connection's listener serves, in key order."""
        ...

    @property
    def closed(self) -> bool:
        """True once the peer is gone."""
        ...

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of log lines about the connection."""
        ...

    @property
    def answer_budget_bytes(self) -> int:
        """The most bytes of an answer, given the unread answers of all peers; one batch is always allowed."""
        ...

    def throttle(self, duration_ms: int) -> None:
        """Start no further request for `duration_ms`, as an answer's throttle_time_ms promises."""
        ...

    def close_when_answered(self) -> None:
        """Start no further request, and close once those that have started are answered."""
        ...

    def reads_ahead(self, change_bytes: int) -> None:
        """Count bytes that are being read into memory for an answer; negative when they are freed."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        ...
