"""BrokerRegistration (API key 62): a starting broker registers with the controller, and gets an epoch.

v2 log directories, v3 the epoch before a clean stop, v4 features whose minimum is 0. Brokers that migrate
from ZooKeeper are refused, as by every Kafka 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.wire import broker_registration as wire
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    BrokerRegistrationRequest,
    versions="0-4",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def broker_registration(
    request: BrokerRegistrationRequest, ctx: ControllerContext
) -> BrokerRegistrationResponse:
    """The answer comes when the registration is committed."""
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support ZooKeeper brokers.")
    broker_epoch: int = await ctx.node.controller.ask(wire.read_request(request))
    ctx.node.connections.note(request.broker_id, ctx.connection, sends_heartbeats=True)
    return wire.response(broker_epoch)
