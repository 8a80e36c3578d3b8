"""The connections of this node's coordinators to other brokers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.security.links import security_with_brokers
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.coordinator.broker_connections import BrokerConnections, ConnectionSettings
from pykafka_broker.coordinator.ports import OtherBrokers
from pykafka_broker.machine.clock import Clock
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.replication.broker_connection import BrokerConnection

if TYPE_CHECKING:
    from pykafka_broker.client.core.connection import Security


def other_brokers(f: Foundation, metadata: MetadataPublisher, undo: Undo) -> OtherBrokers:
    """Connections that are opened for the first request."""
    return OtherBrokers(
        markers=_connections(f, metadata, undo),
        questions=_connections(f, metadata, undo),
        share_states=_connections(f, metadata, undo),
    )


def _connections(f: Foundation, metadata: MetadataPublisher, undo: Undo) -> BrokerConnections:
    config = f.config
    connections = BrokerConnections(
        metadata,
        partial(_connect, f.node_id, security_with_brokers(lambda: f.config), f.clock),
        f.clock,
        ConnectionSettings(
            config.inter_broker_listener_name,
            config["request.timeout.ms"],
            config["socket.connection.setup.timeout.ms"],
            config["connections.max.idle.ms"],
        ),
    )
    metadata.subscribe(connections.on_image)
    undo.add(StopStep.OTHER_BROKERS, connections.close)
    return connections


async def _connect(
    node_id: int, security: Security | None, clock: Clock, address: Address, timeout_ms: int
) -> BrokerConnection:
    # Imported late: a broker without others needs no client.
    from pykafka_broker.client.aio import connect
    from pykafka_broker.client.core.connection import Identity

    identity = Identity(str(node_id), kind="node", security=security)
    return await connect(address, identity=identity, clock=clock, timeout_ms=timeout_ms)
