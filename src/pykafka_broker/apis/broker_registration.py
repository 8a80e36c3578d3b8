"""BrokerRegistration (API key 62): a starting broker introduces itself to the controller, which gives it an
epoch.

v2 log directories, v3 the epoch before a clean stop, v4 features whose minimum is 0. Brokers that migrate
from ZooKeeper are refused, as by every Kafka 4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.events import RegisterBroker
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


def _refused(request: BrokerRegistrationRequest, error: KafkaError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=int(error.code))


@handles(
    BrokerRegistrationRequest,
    versions="0-4",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=_refused,
)
async def broker_registration(
    request: BrokerRegistrationRequest, ctx: ControllerContext
) -> BrokerRegistrationResponse:
    """The answer comes when the registration is committed."""
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support ZooKeeper brokers.")
    event = partial(
        RegisterBroker,
        now_ms=ctx.node.active.now_ms(),
        broker_id=request.broker_id,
        cluster_id=request.cluster_id,
        incarnation_id=request.incarnation_id,
        listeners={
            listener.name: RegisteredEndpoint(listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        },
        features={
            feature.name: FeatureRange(feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        },
        directories=tuple(request.log_dirs),
        rack=request.rack,
        previous_broker_epoch=request.previous_broker_epoch,
    )
    broker_epoch: int = await ctx.node.active.result_of(event)
    ctx.node.active.note(request.broker_id, ctx.connection, sends_heartbeats=True)
    return BrokerRegistrationResponse(error_code=0, broker_epoch=broker_epoch)
