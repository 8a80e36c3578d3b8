"""DescribeQuorum (API key 55): leader, voters and observers of a quorum, and the log end offset of each.

v0 flexible, v1 when each replica fetched and caught up last, v2 error messages, nodes with their listeners
and replicas' directories (KIP-853).
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, u16, uuid


@message()
class DescribeQuorumRequestPartitionData:
    partition_index: int = i32()


@message()
class DescribeQuorumRequestTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[DescribeQuorumRequestPartitionData] = array(DescribeQuorumRequestPartitionData)


@message(api_key=55, versions="0-2", flexible="0+", listeners="broker controller")
class DescribeQuorumRequest:
    topics: list[DescribeQuorumRequestTopicData] = array(DescribeQuorumRequestTopicData)


@message()
class ReplicaState:
    replica_id: int = i32(entity="broker_id")
    replica_directory_id: bytes = uuid("2+", default=ZERO_UUID)
    log_end_offset: int = i64()
    last_fetch_timestamp: int = i64("1+", default=-1)
    last_caught_up_timestamp: int = i64("1+", default=-1)


@message()
class DescribeQuorumResponsePartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    error_message: str | None = string("2+", nullable=True, default=None)
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()
    high_watermark: int = i64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@message()
class DescribeQuorumResponseTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[DescribeQuorumResponsePartitionData] = array(DescribeQuorumResponsePartitionData)


@message()
class Listener:
    name: str = string()
    host: str = string()
    port: int = u16()


@message()
class Node:
    node_id: int = i32(entity="broker_id")
    listeners: list[Listener] = array(Listener)


@message(api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: int = i16()
    error_message: str | None = string("2+", nullable=True, default=None)
    topics: list[DescribeQuorumResponseTopicData] = array(DescribeQuorumResponseTopicData)
    nodes: list[Node] = array(Node, "2+", default=[])
