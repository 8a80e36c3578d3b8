"""BeginQuorumEpoch (API key 53): a new leader makes itself known to the voters.

v1 flexible, with the voter's key and the leader's endpoints (KIP-853).
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, i16, i32, message, string, u16, uuid


@message()
class BeginQuorumEpochRequestPartitionData:
    partition_index: int = i32()
    voter_directory_id: bytes = uuid("1+", default=ZERO_UUID)
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()


@message()
class BeginQuorumEpochRequestTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[BeginQuorumEpochRequestPartitionData] = array(BeginQuorumEpochRequestPartitionData)


@message()
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = u16()


@message(api_key=53, versions="0-1", flexible="1+", listeners="controller")
class BeginQuorumEpochRequest:
    cluster_id: str | None = string(nullable=True, default=None)
    voter_id: int = i32("1+", default=-1, entity="broker_id")
    topics: list[BeginQuorumEpochRequestTopicData] = array(BeginQuorumEpochRequestTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", default=[])


@message()
class BeginQuorumEpochResponsePartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()


@message()
class BeginQuorumEpochResponseTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[BeginQuorumEpochResponsePartitionData] = array(BeginQuorumEpochResponsePartitionData)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = u16()


@message(api_key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    error_code: int = i16()
    topics: list[BeginQuorumEpochResponseTopicData] = array(BeginQuorumEpochResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, default=[])
