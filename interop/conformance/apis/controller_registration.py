"""ControllerRegistration: controllers say how they are reached."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, uuid_of
from interop.conformance.conversation import conversation
from interop.conformance.talk import Talk
from pykafka_broker.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest


def registering(incarnation_id: bytes) -> ControllerRegistrationRequest:
    """The registration of a controller that is none."""
    return ControllerRegistrationRequest(
        controller_id=4_000_000,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=[Listener(name="CONTROLLER", host="elsewhere", port=9093, security_protocol=0)],
        features=[Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
    )


@conversation(settings=ELSEWHERE, alone=True)
def a_controller_is_described_once_it_has_registered(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(registering(uuid_of(talk, "life")))
    controllers.ask(
        DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2),
        until=lambda answer: len(answer.brokers) == 2,
        in_any_order={"brokers": "broker_id"},
    )
