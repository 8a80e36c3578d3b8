"""What makes the connections of each kind of listener."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.apis.ports.authorizer import (
    ALLOW_ALL,
    AclOperation,
    AclResourceType,
    AllowAll,
    Requester,
)
from pykafka_broker.apis.ports.quotas import UNLIMITED
from pykafka_broker.broker.listener_kinds import listener_kinds
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.shared import Shared
from pykafka_broker.testing.clock import VirtualClock


class HidesAll(AllowAll):
    """An authorizer that would have handlers leave out everything."""

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
    ) -> Collection[str]:
        return ()


def test_a_listener_of_brokers_speaks_kafka() -> None:
    kinds = listener_kinds(Shared(VirtualClock()), ALLOW_ALL, UNLIMITED)

    assert list(kinds) == [BROKER_LISTENER]
    assert isinstance(kinds[BROKER_LISTENER](ListenerEndpoint("CLIENTS", "127.0.0.1", 0)), KafkaConnections)


def test_a_node_is_not_built_with_an_authorizer_that_its_handlers_do_not_ask() -> None:
    with pytest.raises(NotImplementedError, match="handler does not ask the authorizer yet"):
        listener_kinds(Shared(VirtualClock()), HidesAll(), UNLIMITED)
