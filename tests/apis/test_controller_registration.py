"""ControllerRegistration (70): controllers tell how they are reached, this node's own at its start."""

from __future__ import annotations

from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import ControllerRegistration, FeatureRange, RegisteredEndpoint
from pykafka_broker.protocol.messages import controller_registration as registering
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

INCARNATION = b"\x05" * 16


async def test_this_nodes_controller_is_registered_when_the_node_serves(
    combined: Home, controllers: User
) -> None:
    address = RegisteredEndpoint(*combined.broker.node.listeners.advertised("CONTROLLER"), 0)

    [own] = combined.broker.node.image.controllers.values()

    assert (own.controller_id, own.listeners, own.features) == (1, {"CONTROLLER": address}, NODE_FEATURES)


async def test_a_node_without_a_listener_of_controllers_registers_none(user: User, home: Home) -> None:
    assert home.broker.node.image.controllers == {}


async def test_a_controller_elsewhere_is_known_from_then_on(combined: Home, controllers: User) -> None:
    request = registering.ControllerRegistrationRequest(
        controller_id=5,
        incarnation_id=INCARNATION,
        zk_migration_ready=False,
        listeners=[registering.Listener(name="CONTROLLER", host="five", port=9093, security_protocol=0)],
        features=[
            registering.Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
        ],
    )

    answer = await controllers.send(request, 0)

    assert answer == registering.ControllerRegistrationResponse(error_code=0, error_message="")
    assert combined.broker.node.image.controllers[5] == ControllerRegistration(
        5,
        INCARNATION,
        {"CONTROLLER": RegisteredEndpoint("five", 9093, 0)},
        {"metadata.version": FeatureRange(7, 30)},
    )
