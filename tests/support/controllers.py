"""A node with a listener of controllers, and the requests that other brokers send to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykafka_broker.broker.broker import Broker
from pykafka_broker.protocol.messages import broker_registration as registering
from pykafka_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

#: What Apache Kafka's own server.properties has, with ports that the system chooses.
COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}
FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
INCARNATION = b"\x01" * 16
DIRECTORY = b"\x02" * 16


def combined_home(overrides: Mapping[str, str] | None = None) -> Home:
    """The home of a node that serves controllers too."""
    return Home({**COMBINED, **(overrides or {})}, listen=None)


def controller_address(broker: Broker) -> str:
    """The address of the listener of controllers."""
    host, port = broker.node.listeners.advertised("CONTROLLER")
    return f"{host}:{port}"


def registration(broker_id: int = 2, **details: Any) -> registering.BrokerRegistrationRequest:
    """The registration of a broker elsewhere; the cluster's id has to be among the details."""
    values: dict[str, Any] = {
        "broker_id": broker_id,
        "incarnation_id": INCARNATION,
        "listeners": [
            registering.Listener(name="PLAINTEXT", host="elsewhere", port=9092, security_protocol=0)
        ],
        "features": [
            registering.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in FEATURES.items()
        ],
        "rack": None,
        "log_dirs": [DIRECTORY],
        **details,
    }
    return registering.BrokerRegistrationRequest(**values)


def heartbeat(epoch: int, offset: int, broker_id: int = 2, **details: Any) -> BrokerHeartbeatRequest:
    """The heartbeat of a broker elsewhere that has applied the metadata up to `offset`."""
    wants = {"want_fence": False, "want_shut_down": False, **details}
    return BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset, **wants
    )


async def register(controllers: User, home: Home, **details: Any) -> int:
    """Register a broker elsewhere; its epoch."""
    cluster_id = home.broker.node.image.cluster_id
    answer = await controllers.send(registration(cluster_id=cluster_id, **details), 4)
    assert answer.error_code == 0
    epoch: int = answer.broker_epoch
    return epoch


async def unfenced(controllers: User, home: Home, **details: Any) -> int:
    """The epoch of a broker elsewhere that is registered and unfenced."""
    epoch = await register(controllers, home, **details)
    answer = await controllers.send(heartbeat(epoch, epoch, details.get("broker_id", 2)), 2)
    assert (answer.error_code, answer.is_fenced) == (0, False)
    return epoch
