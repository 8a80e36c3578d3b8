"""What makes the connections of each kind of listener."""

from __future__ import annotations

from typing import NoReturn

import pytest

from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.apis.ports.authorizer import (
    ALLOW_ALL,
)
from pykafka_broker.apis.ports.quotas import UNLIMITED
from pykafka_broker.broker.listener_kinds import HandlerPorts, PortsToCome, listener_kinds
from pykafka_broker.broker.security.protocols import ListenerSecurity, security_protocols
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.identity import Anonymous
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import Plaintext
from pykafka_broker.testing.clock import VirtualClock


def unbuilt() -> NoReturn:
    raise AssertionError("no client has connected")


def test_a_listener_of_brokers_speaks_kafka() -> None:
    shared = Shared(VirtualClock())
    kinds = listener_kinds(
        shared, security_protocols(shared, unbuilt, unbuilt), ALLOW_ALL, UNLIMITED, HandlerPorts()
    )

    service = kinds[BROKER_LISTENER](ListenerEndpoint("CLIENTS", "127.0.0.1", 0))
    assert isinstance(service.new_connection, KafkaConnections)
    assert isinstance(service.transport, Plaintext)


def test_a_listener_is_not_started_before_the_ports_of_its_handlers_exist() -> None:
    ports: PortsToCome[str] = PortsToCome()
    with pytest.raises(RuntimeError, match="before the ports of its handlers exist"):
        ports()

    ports.give("those of the node")

    assert ports() == "those of the node"


def test_a_security_protocol_that_is_not_offered_is_refused() -> None:
    shared = Shared(VirtualClock())
    kinds = listener_kinds(
        shared, security_protocols(shared, unbuilt, unbuilt), ALLOW_ALL, UNLIMITED, HandlerPorts()
    )
    endpoint = ListenerEndpoint("SSL", "127.0.0.1", 0, security_protocol="SSH")

    with pytest.raises(ValueError, match="SSH is not offered"):
        kinds[BROKER_LISTENER](endpoint)


def test_each_listener_has_a_security_of_its_own() -> None:
    endpoints: list[ListenerEndpoint] = []

    def noted(endpoint: ListenerEndpoint) -> ListenerSecurity:
        endpoints.append(endpoint)
        return ListenerSecurity(Plaintext(), Anonymous())

    kinds = listener_kinds(Shared(VirtualClock()), {"SSL": noted}, ALLOW_ALL, UNLIMITED, HandlerPorts())
    inside = ListenerEndpoint("INSIDE", "127.0.0.1", 0, security_protocol="SSL")
    outside = ListenerEndpoint("OUTSIDE", "127.0.0.1", 0, security_protocol="SSL")

    services = [kinds[BROKER_LISTENER](endpoint) for endpoint in (inside, outside)]

    assert endpoints == [inside, outside]
    assert services[0].transport is not services[1].transport
