"""DescribeCluster (API key 60): cluster id, controller and brokers for admin clients (KIP-700).

v1 endpoint type (KIP-919), v2 fenced brokers (KIP-1073). A listener of brokers describes only brokers, one of
controllers only the registered controllers; a request for the other kind gets MISMATCHED_ENDPOINT_TYPE.

A controller that has found no leader since its start does not know the metadata.version of the cluster, and
answers UNSUPPORTED_VERSION, as Apache Kafka's does. Here the answer also says why, and has the voters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.apis.topology import cluster_operations
from pykafka_broker.cluster.features import CONTROLLER_REGISTRATIONS_SINCE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext, RequestContext

BROKERS, CONTROLLERS = 1, 2
ENDPOINT_TYPES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def _refused(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=int(error.code),
        error_message=error.message,
        cluster_id="",
        brokers=[],
    )


@handles(
    DescribeClusterRequest,
    versions="0-2",
    needs=[partly_on_cluster(AclOperation.DESCRIBE).asked_by_handler()],
    error_response=_refused,
)
def describe_cluster(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    """The brokers a client of this listener can reach; fenced ones only when asked for."""
    if request.endpoint_type != BROKERS:
        return _mismatched(BROKERS, request.endpoint_type, ctx.version)
    brokers = []
    for _, broker in sorted(ctx.node.metadata.image.brokers.items()):
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


@handles(
    DescribeClusterRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=_refused,
)
def describe_controllers(request: DescribeClusterRequest, ctx: ControllerContext) -> DescribeClusterResponse:
    """The controllers that a client of this listener can reach."""
    image = ctx.node.metadata.image
    if image.offset < 0:
        return _without_leader(ctx)
    if image.metadata_version < CONTROLLER_REGISTRATIONS_SINCE:
        text = "Direct-to-controller communication is not supported with the current MetadataVersion."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    if request.endpoint_type != CONTROLLERS:
        return _mismatched(CONTROLLERS, request.endpoint_type, ctx.version)
    controllers = []
    for _, controller in sorted(image.controllers.items()):
        endpoint = controller.listeners.get(ctx.connection.listener_name)
        if endpoint is not None:
            controllers.append(
                DescribeClusterBroker(
                    broker_id=controller.controller_id, host=endpoint.host, port=endpoint.port
                )
            )
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        endpoint_type=CONTROLLERS,
        cluster_id=image.cluster_id,
        controller_id=ctx.node.quorum.leader_id,
        brokers=controllers,
        cluster_authorized_operations=cluster_operations(ctx) if asked else OPERATIONS_NOT_ASKED,
    )


def _without_leader(ctx: ControllerContext) -> DescribeClusterResponse:
    """The answer of a controller whose start waits for a leader."""
    listener = ctx.connection.listener_name
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        error_message="No controller leads the quorum, and until one does this one does not know the "
        "MetadataVersion.",
        endpoint_type=CONTROLLERS,
        cluster_id=ctx.node.metadata.image.cluster_id,
        controller_id=-1,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port)
            for node_id, endpoints in sorted(ctx.node.quorum.voter_endpoints.items())
            for host, port in (endpoints[name] for name in endpoints if name == listener)
        ],
    )


def _mismatched(served: int, asked: int, version: int) -> DescribeClusterResponse:
    if asked in ENDPOINT_TYPES:
        error = ErrorCode.INVALID_REQUEST if version < 1 else ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            f"The request was sent to an endpoint of type {ENDPOINT_TYPES[served]}, "
            f"but we wanted an endpoint of type {ENDPOINT_TYPES[asked]}"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {asked}"
    return DescribeClusterResponse(
        throttle_time_ms=0, error_code=int(error), error_message=message, cluster_id="", brokers=[]
    )
