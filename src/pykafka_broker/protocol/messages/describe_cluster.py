"""DescribeCluster (API key 60): the brokers, or the controllers, and the cluster id.

v0 flexible, v1 endpoint types, v2 fenced brokers on request.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, message, string


@message(api_key=60, versions="0-2", flexible="0+", listeners="broker controller")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = i8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+", default=False)


@message()
class DescribeClusterBroker:
    broker_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    rack: str | None = string(nullable=True, default=None)
    is_fenced: bool = boolean("2+", default=False)


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    endpoint_type: int = i8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = i32(default=-1, entity="broker_id")
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = i32(default=-0x80000000)
