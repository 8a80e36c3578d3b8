"""Metadata (API key 3): which brokers exist and who leads which partition.

v1 controller id, racks and internal topics, v2 cluster id, v4 auto-creation, v5 offline replicas, v7 leader
epochs, v8 authorized operations, v9 flexible, v10 topic ids, v11 leaves the cluster's authorized operations
to DescribeCluster, v12 asking by topic id works, v13 top-level error.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string, uuid


@message()
class MetadataRequestTopic:
    topic_id: bytes = uuid("10+", default=ZERO_UUID)
    name: str | None = string(nullable="10+", entity="topic_name")


@message(api_key=3, versions="0-13", flexible="9+", listeners="broker")
class MetadataRequest:
    #: None asks for every topic; v0 cannot say None and sends an empty list instead.
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10", default=False)
    include_topic_authorized_operations: bool = boolean("8+", default=False)


@message()
class MetadataResponseBroker:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    rack: str | None = string("1+", nullable=True, default=None)


@message()
class MetadataResponsePartition:
    error_code: int = i16()
    partition_index: int = i32()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32("7+", default=-1)
    replica_nodes: list[int] = array(i32(entity="broker_id"))
    isr_nodes: list[int] = array(i32(entity="broker_id"))
    offline_replicas: list[int] = array(i32(entity="broker_id"), "5+", default=[])


@message()
class MetadataResponseTopic:
    error_code: int = i16()
    name: str | None = string(nullable="12+", entity="topic_name")
    topic_id: bytes = uuid("10+", default=ZERO_UUID)
    is_internal: bool = boolean("1+", default=False)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = i32("8+", default=-0x80000000)


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: int = i32("3+", default=0)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable=True, default=None)
    controller_id: int = i32("1+", default=-1, entity="broker_id")
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = i32("8-10", default=-0x80000000)
    error_code: int = i16("13+", default=0)
