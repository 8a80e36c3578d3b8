"""BrokerHeartbeat (API key 63): a broker says that it is alive, and asks for a new state.

v1 failed log directories, v2 cordoned ones (KIP-1066).
"""

from __future__ import annotations

from pykafka_broker.controller.core.events import BrokerHeartbeat, HeartbeatResult
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages import broker_heartbeat as m


def request(event: BrokerHeartbeat, _: common.Terms) -> m.BrokerHeartbeatRequest:
    """The request of a broker."""
    cordoned = event.cordoned_directories
    return m.BrokerHeartbeatRequest(
        broker_id=event.broker_id,
        broker_epoch=event.broker_epoch,
        current_metadata_offset=event.metadata_offset,
        want_fence=event.want_fence,
        want_shut_down=event.want_shutdown,
        offline_log_dirs=list(event.offline_directories),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def read_request(request: m.BrokerHeartbeatRequest) -> BrokerHeartbeat:
    """The event of a request."""
    cordoned = request.cordoned_log_dirs
    return BrokerHeartbeat(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        metadata_offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shutdown=request.want_shut_down,
        offline_directories=tuple(request.offline_log_dirs),
        cordoned_directories=None if cordoned is None else tuple(cordoned),
    )


def response(result: HeartbeatResult) -> m.BrokerHeartbeatResponse:
    """The answer to a broker."""
    return m.BrokerHeartbeatResponse(
        error_code=0,
        is_caught_up=result.is_caught_up,
        is_fenced=result.is_fenced,
        should_shut_down=result.should_shut_down,
    )


def refused(_: m.BrokerHeartbeatRequest, error: KafkaError) -> m.BrokerHeartbeatResponse:
    """The answer that refuses a request as a whole."""
    return m.BrokerHeartbeatResponse(error_code=int(error.code), should_shut_down=False)


def read_response(response: m.BrokerHeartbeatResponse, _: BrokerHeartbeat) -> HeartbeatResult:
    """The state of the broker for the controller; KafkaError if the controller does not know this broker."""
    common.raise_refusal(response.error_code)
    return HeartbeatResult(response.is_caught_up, response.is_fenced, response.should_shut_down)
