"""All instances of clients that push metrics, and what they are asked for (`apis/ports/telemetry.py`).

As in Apache Kafka's ClientMetricsManager an instance is forgotten when its connection is lost, when it is
silent, and when there are too many others. It then only has to ask again. Unlike there, changed subscriptions
are matched with what the newest request says of the client: nothing that a client says of itself is kept for
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.ports.telemetry import Subscribed
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID, uuid_text
from pykafka_broker.protocol.records.compression import Codec, decompress
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC_ID
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.telemetry.instance import Instance, asked, pushed
from pykafka_broker.telemetry.otlp import points_of
from pykafka_broker.telemetry.series import PushedSeries
from pykafka_broker.telemetry.subscriptions import (
    Subscription,
    subscription_id,
    subscription_of,
    wanted_of,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection
    from pykafka_broker.machine.clock import Clock
    from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest

logger = logging.getLogger("kafka.server.ClientMetricsManager")

#: The most instances that are remembered, as in Apache Kafka.
MAX_INSTANCES = 16_384
#: Ids that no instance can have.
RESERVED_IDS = (ZERO_UUID, METADATA_TOPIC_ID)


class TelemetrySettings(NamedTuple):
    """The `telemetry.*` values."""

    #: The most bytes of a push, before and after it is decompressed.
    max_bytes: int
    #: Whether to keep what is pushed.
    keeps_series: bool


class ClientMetrics:
    """The instances of clients that this node knows. Event loop only."""

    def __init__(
        self,
        settings: TelemetrySettings,
        clock: Clock,
        new_uuid: Callable[[], bytes],
        max_instances: int = MAX_INSTANCES,
    ) -> None:
        #: What was pushed, for those who publish it; empty unless `keeps_series`.
        self.series = PushedSeries()
        #: Pushes that were accepted and not read, because opentelemetry-proto is not installed.
        self.unread = 0
        self._settings = settings
        self._clock = clock
        self._new_uuid = new_uuid
        self._max_instances = max_instances
        #: By id, in the order of their last use, each with the moment at which it is forgotten.
        self._instances: dict[bytes, tuple[Instance, int]] = {}
        #: The instance that was made last on each connection.
        self._by_connection: dict[ClientConnection, bytes] = {}
        self._configs: Mapping[str, Mapping[str, str]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        #: Grows with each change of the subscriptions.
        self._version = 0

    def __len__(self) -> int:
        return len(self._instances)

    def published(self, old: ClusterImage, new: ClusterImage) -> None:
        """`new` is the newest committed metadata."""
        if new.configs is old.configs:
            return
        before, self._configs = self._configs, new.configs_of(ResourceType.CLIENT_METRICS)
        changed = [
            name
            for name in before.keys() | self._configs.keys()
            if before.get(name) is not self._configs.get(name)
        ]
        for name in changed:
            self._subscriptions.pop(name, None)
            if name in self._configs:
                try:
                    self._subscriptions[name] = subscription_of(self._configs[name])
                except ConfigError as error:
                    # A controller of another program or version may have accepted it.
                    logger.warning("No client pushes for the subscription %s: %s", name, error)
        self._version += bool(changed)

    def subscribe(
        self, client_instance_id: bytes, client_id: str, connection: ClientConnection
    ) -> Subscribed:
        """Return what the instance has to push; one whose id is zero gets a new id.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED before the interval is over.
        """
        if client_instance_id == ZERO_UUID:
            client_instance_id = self._new_uuid()
        now_ms = self._clock.monotonic_ms()
        instance, error = asked(self._taken(client_instance_id, client_id, connection, now_ms), now_ms)
        self._keep(client_instance_id, instance, now_ms)
        if error:
            raise KafkaError(error)
        return Subscribed(
            client_instance_id,
            instance.subscription_id,
            instance.metrics,
            instance.push_interval_ms,
            self._settings.max_bytes,
        )

    def push(self, push: PushTelemetryRequest, client_id: str, connection: ClientConnection) -> None:
        """Take what an instance pushes.

        Raises:
            KafkaError: the push is refused.
        """
        if push.client_instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        now_ms = self._clock.monotonic_ms()
        known = self._taken(push.client_instance_id, client_id, connection, now_ms)
        instance, error = pushed(known, push, now_ms, self._settings.max_bytes)
        if not error and push.metrics:
            error = self._receive(push, client_id, instance.push_interval_ms, now_ms)
            instance = instance._replace(last_error=error)
        self._keep(push.client_instance_id, instance, now_ms)
        if push.terminating:
            self.series.forget(push.client_instance_id)
        if error:
            raise KafkaError(error)

    # --- instances --------------------------------------------------------------------------------

    def _taken(
        self, instance_id: bytes, client_id: str, connection: ClientConnection, now_ms: int
    ) -> Instance:
        """The instance, until `_keep`: a new one if it is unknown, or the subscriptions have changed."""
        instance, forgotten_ms = self._instances.pop(instance_id, (None, 0))
        if instance is not None and now_ms < forgotten_ms and instance.version == self._version:
            return instance
        if connection not in self._by_connection:
            connection.on_close(partial(self._lost, connection))
        self._by_connection[connection] = instance_id
        wanted = wanted_of(self._subscriptions, _properties(instance_id, client_id, connection))
        return Instance(subscription_id(wanted, instance_id), self._version, *wanted)

    def _keep(self, instance_id: bytes, instance: Instance, now_ms: int) -> None:
        self._instances[instance_id] = instance, now_ms + instance.expiry_ms
        if len(self._instances) > self._max_instances:
            del self._instances[next(iter(self._instances))]

    def _lost(self, connection: ClientConnection) -> None:
        self._instances.pop(self._by_connection.pop(connection), None)

    # --- what is pushed ---------------------------------------------------------------------------

    def _receive(
        self, push: PushTelemetryRequest, client_id: str, interval_ms: int, now_ms: int
    ) -> ErrorCode:
        """Decompress a push, and keep what is in it."""
        try:
            data = decompress(Codec(push.compression_type), push.metrics, self._settings.max_bytes)
        except KafkaError:
            return ErrorCode.INVALID_RECORD
        if not self._settings.keeps_series or push.terminating:
            return ErrorCode.NONE
        try:
            points = points_of(data)
        except ValueError as error:
            logger.debug("%s pushed what is no OTLP: %s", uuid_text(push.client_instance_id), error)
            return ErrorCode.INVALID_RECORD
        except ImportError as error:
            if not self.unread:
                logger.warning("Metrics that clients push are not kept: %s", error)
            self.unread += 1
            return ErrorCode.NONE
        self.series.push(push.client_instance_id, client_id, points, interval_ms, now_ms)
        return ErrorCode.NONE


def _properties(instance_id: bytes, client_id: str, connection: ClientConnection) -> dict[str, str]:
    """What subscriptions may select a client by."""
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": client_id,
        "client_software_name": connection.software.name,
        "client_software_version": connection.software.version,
        "client_source_address": connection.client_host.removeprefix("/"),
        "client_source_port": str(connection.peer_port),
    }
