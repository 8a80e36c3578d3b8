"""EndQuorumEpoch (API key 54): a leader resigns and proposes successors.

v1 flexible, candidates with their directories and the leader's endpoints (KIP-853).
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string, u16, uuid


@message()
class ReplicaInfo:
    candidate_id: int = i32(entity="broker_id")
    candidate_directory_id: bytes = uuid()


@message()
class EndQuorumEpochRequestPartitionData:
    partition_index: int = i32()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()
    preferred_successors: list[int] = array(i32(), "0", default=[])
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, "1+", default=[])


@message()
class EndQuorumEpochRequestTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[EndQuorumEpochRequestPartitionData] = array(EndQuorumEpochRequestPartitionData)


@message()
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = u16()


@message(api_key=54, versions="0-1", flexible="1+", listeners="controller")
class EndQuorumEpochRequest:
    cluster_id: str | None = string(nullable=True, default=None)
    topics: list[EndQuorumEpochRequestTopicData] = array(EndQuorumEpochRequestTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", default=[])


@message()
class EndQuorumEpochResponsePartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()


@message()
class EndQuorumEpochResponseTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[EndQuorumEpochResponsePartitionData] = array(EndQuorumEpochResponsePartitionData)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = u16()


@message(api_key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    error_code: int = i16()
    topics: list[EndQuorumEpochResponseTopicData] = array(EndQuorumEpochResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, default=[])
