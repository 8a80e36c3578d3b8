"""DescribeCluster (API key 60): cluster id, controller and brokers for admin clients (KIP-700).

v1 endpoint type (KIP-919), v2 fenced brokers (KIP-1073). A broker listener describes brokers only; asking it
for controllers is MISMATCHED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import partly_on_cluster
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.apis.topology import cluster_operations
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

BROKERS, CONTROLLERS = 1, 2


@handles(
    DescribeClusterRequest,
    versions="0-2",
    needs=[partly_on_cluster(AclOperation.DESCRIBE)],
)
def describe_cluster(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    """The brokers a client of this listener can reach; fenced ones only when asked for."""
    if ctx.version >= 1 and request.endpoint_type != BROKERS:
        return _refused(request.endpoint_type)
    brokers = []
    for broker in ctx.node.metadata.image.brokers.values():
        address = ctx.node.metadata.advertised(broker.broker_id, ctx.connection)
        if address is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        host, port = address
        brokers.append(
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=host, port=port, rack=broker.rack, is_fenced=broker.fenced
            )
        )
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        endpoint_type=BROKERS,
        cluster_id=ctx.node.metadata.image.cluster_id,
        controller_id=ctx.node.metadata.random_alive_broker_id(),
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(ctx) if asked else OPERATIONS_NOT_ASKED,
    )


def _refused(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(
        throttle_time_ms=0, error_code=int(error), error_message=message, cluster_id="", brokers=[]
    )
