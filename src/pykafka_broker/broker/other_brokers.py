"""The connections of this node's coordinators to other brokers."""

from __future__ import annotations

from functools import partial

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.security.links import connect_to_broker, security_with_brokers
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.coordinator.kept_connections import ConnectionSettings, KeptConnections
from pykafka_broker.coordinator.ports import OtherBrokers
from pykafka_broker.metadata.publisher import MetadataPublisher


def other_brokers(f: Foundation, metadata: MetadataPublisher, undo: Undo) -> OtherBrokers:
    """Connections that are opened for the first request."""
    return OtherBrokers(
        markers=_connections(f, metadata, undo),
        questions=_connections(f, metadata, undo),
        share_states=_connections(f, metadata, undo),
    )


def _connections(f: Foundation, metadata: MetadataPublisher, undo: Undo) -> KeptConnections:
    config = f.config
    connections = KeptConnections(
        metadata,
        partial(connect_to_broker, str(f.node_id), security_with_brokers(lambda: f.config), f.clock),
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
