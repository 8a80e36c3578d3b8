"""The metrics that clients push (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection
    from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest


class Subscribed(NamedTuple):
    """What one instance of a client is asked to push."""

    client_instance_id: bytes
    subscription_id: int
    #: Prefixes of metrics; "*" alone stands for all.
    metrics: tuple[str, ...]
    push_interval_ms: int
    #: The most bytes of a push.
    max_bytes: int


class Telemetry(Protocol):
    """Asks instances of clients for metrics, and takes what they push. Event loop only."""

    def subscribe(
        self, client_instance_id: bytes, client_id: str, connection: ClientConnection
    ) -> Subscribed:
        """Return what the instance has to push; one whose id is zero gets a new id.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED before the interval is over.
        """
        ...

    def push(self, push: PushTelemetryRequest, client_id: str, connection: ClientConnection) -> None:
        """Take what an instance pushes.

        Raises:
            KafkaError: the push is refused.
        """
        ...
