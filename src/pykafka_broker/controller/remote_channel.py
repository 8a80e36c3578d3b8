"""The active controller of another node: a `ControllerChannel` over connections to it.

The requests are those of Apache Kafka's brokers. As in Kafka, they use several connections: a heartbeat must
not wait behind the creation of a topic. The answer about a created topic waits until this node has published
the topic, because the caller goes on to use it on this node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.channel import PublishedImages
from pykafka_broker.controller.core import events
from pykafka_broker.controller.leader_connection import LeaderConnection, LeaderConnectionSettings, LogLeader
from pykafka_broker.controller.wire import (
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_topics,
)
from pykafka_broker.controller.wire.common import Terms
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.client.core.connection import ClientSecurity


#: The patience of Apache Kafka's channels of these names.
FORWARDING_PATIENCE_MS = 60_000
DIRECTORIES_PATIENCE_MS = 60_000
#: Apache Kafka's brokers never give up an AlterPartition request; ours send a new one after this time.
IN_SYNC_REPLICAS_PATIENCE_MS = 60_000
REGISTRATION_PATIENCE_MS = 5_000


class RemoteSettings(NamedTuple):
    """Time-outs: that of a heartbeat with all its attempts, `controller.socket.timeout.ms` and
    `socket.connection.setup.timeout.ms`; and the security of the connections.
    """

    heartbeat_patience_ms: int
    attempt_timeout_ms: int
    connect_timeout_ms: int
    security: ClientSecurity | None = None


class LeaderConnections(NamedTuple):
    """The connections of a node to the active controller, one for each of Apache Kafka's channels."""

    forwarding: LeaderConnection
    heartbeats: LeaderConnection
    directories: LeaderConnection
    in_sync_replicas: LeaderConnection
    registration: LeaderConnection

    @classmethod
    def to(
        cls,
        leader: LogLeader,
        clock: Clock,
        node_id: int,
        settings: RemoteSettings,
        *,
        is_led_here: Callable[[], bool] = lambda: False,
    ) -> LeaderConnections:
        """Connections to `leader`, each made at its first request."""

        def connection(name: str, patience_ms: int) -> LeaderConnection:
            timeouts = LeaderConnectionSettings(
                node_id,
                name,
                patience_ms,
                min(settings.attempt_timeout_ms, patience_ms),
                settings.connect_timeout_ms,
                settings.security,
            )
            return LeaderConnection(leader, clock, timeouts, is_led_here=is_led_here)

        return cls(
            forwarding=connection("forwarding", FORWARDING_PATIENCE_MS),
            heartbeats=connection("heartbeat", settings.heartbeat_patience_ms),
            directories=connection("directory-assignments", DIRECTORIES_PATIENCE_MS),
            in_sync_replicas=connection("alter-partition", IN_SYNC_REPLICAS_PATIENCE_MS),
            registration=connection("registration", REGISTRATION_PATIENCE_MS),
        )

    async def close(self) -> None:
        """Close all connections; waiting callers are answered with NOT_CONTROLLER."""
        for connection in self:
            await connection.close()


class Rpc(NamedTuple):
    """How an event is sent: the module of its messages, and the field of `LeaderConnections` that it uses."""

    wire: Any
    channel: str


RPCS: dict[type, Rpc] = {
    events.RegisterBroker: Rpc(broker_registration, "heartbeats"),
    events.BrokerHeartbeat: Rpc(broker_heartbeat, "heartbeats"),
    events.AssignReplicasToDirs: Rpc(assign_replicas_to_dirs, "directories"),
    events.AlterPartition: Rpc(alter_partition, "in_sync_replicas"),
    events.AllocateProducerIds: Rpc(allocate_producer_ids, "forwarding"),
    events.CreateTopics: Rpc(create_topics, "forwarding"),
    events.RegisterController: Rpc(controller_registration, "registration"),
}


class RemoteControllerChannel:
    """Implements `ControllerChannel`.

    Besides KafkaError `ask` raises LedHere if the active controller is in this process.
    """

    def __init__(self, connections: LeaderConnections, metadata: PublishedImages, clock: Clock) -> None:
        self._connections = connections
        self._metadata = metadata
        self._clock = clock

    async def ask(self, event: events.Event, timeout_ms: int | None = None) -> Any:
        """The result of an event."""
        wire, channel = RPCS[type(event)]
        connection: LeaderConnection = getattr(self._connections, channel)
        patience_ms = connection.patience_ms if timeout_ms is None else timeout_ms
        give_up_ms = self._clock.monotonic_ms() + patience_ms
        request = wire.request(event, Terms(patience_ms, self._metadata.image.features))
        result = wire.read_response(await connection.ask(request, timeout_ms=patience_ms), event)
        if isinstance(event, events.CreateTopics) and not event.validate_only:
            await self._published([topic.name for topic in result if topic.exists], give_up_ms)
        return result

    async def _published(self, names: Sequence[str], give_up_ms: int) -> None:
        """Return when this node has published these topics or the time is over."""
        if _are_shown(names, self._metadata.image):
            return
        wait = Wait()

        def look(_: ClusterImage, image: ClusterImage) -> None:
            if _are_shown(names, image):
                wait.end()

        unsubscribe = self._metadata.subscribe(look)
        try:
            await wait.until(self._clock.call_at, give_up_ms)
        finally:
            unsubscribe()


def _are_shown(names: Iterable[str], image: ClusterImage) -> bool:
    return all(name in image.topics for name in names)
