"""ControllerRegistration (API key 70): a controller's endpoints and features (KIP-919)."""

from __future__ import annotations

from pykafka_broker.controller.core.events import RegisterController
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages import controller_registration as m


def request(event: RegisterController, terms: common.Terms) -> m.ControllerRegistrationRequest:
    """The request of a controller."""
    return m.ControllerRegistrationRequest(
        controller_id=event.controller_id,
        incarnation_id=event.incarnation_id,
        zk_migration_ready=False,
        listeners=common.told_listeners(m, event.listeners),
        features=common.told_features(m, event.features, terms),
    )


def read_request(request: m.ControllerRegistrationRequest) -> RegisterController:
    """The event of a request."""
    return RegisterController(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        listeners=common.read_listeners(request.listeners),
        features=common.read_features(request.features),
    )


def response(_: None) -> m.ControllerRegistrationResponse:
    """The answer to a controller that is registered."""
    return m.ControllerRegistrationResponse(error_code=0, error_message="")


def refused(_: m.ControllerRegistrationRequest, error: KafkaError) -> m.ControllerRegistrationResponse:
    """The answer that refuses a request as a whole."""
    return m.ControllerRegistrationResponse(error_code=int(error.code), error_message=error.message)


def read_response(response: m.ControllerRegistrationResponse, _: RegisterController) -> None:
    """KafkaError if the controller is refused."""
    common.raise_refusal(response.error_code, response.error_message)
