"""BrokerRegistration (API key 62): a starting broker introduces itself.

v2 log directories, v3 the epoch before a clean stop, v4 features whose minimum is 0.
"""

from __future__ import annotations

from pykafka_broker.controller.core.events import RegisterBroker
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages import broker_registration as m


def request(event: RegisterBroker, terms: common.Terms) -> m.BrokerRegistrationRequest:
    """The request of a broker."""
    return m.BrokerRegistrationRequest(
        broker_id=event.broker_id,
        cluster_id=event.cluster_id,
        incarnation_id=event.incarnation_id,
        listeners=common.told_listeners(m, event.listeners),
        features=common.told_features(m, event.features, terms),
        rack=event.rack,
        log_dirs=sorted(event.directories),
        previous_broker_epoch=event.previous_broker_epoch,
    )


def read_request(request: m.BrokerRegistrationRequest) -> RegisterBroker:
    """The event of a request."""
    return RegisterBroker(
        broker_id=request.broker_id,
        cluster_id=request.cluster_id,
        incarnation_id=request.incarnation_id,
        listeners=common.read_listeners(request.listeners),
        features=common.read_features(request.features),
        directories=tuple(request.log_dirs),
        rack=request.rack,
        previous_broker_epoch=request.previous_broker_epoch,
    )


def response(broker_epoch: int) -> m.BrokerRegistrationResponse:
    """The answer to a broker that is registered."""
    return m.BrokerRegistrationResponse(error_code=0, broker_epoch=broker_epoch)


def refused(_: m.BrokerRegistrationRequest, error: KafkaError) -> m.BrokerRegistrationResponse:
    """The answer that refuses a request as a whole."""
    return m.BrokerRegistrationResponse(error_code=int(error.code))


def read_response(response: m.BrokerRegistrationResponse, _: RegisterBroker) -> int:
    """The broker epoch; KafkaError if the broker is refused."""
    common.raise_refusal(response.error_code)
    return response.broker_epoch
