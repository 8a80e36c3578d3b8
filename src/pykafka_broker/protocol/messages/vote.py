"""Vote (API key 52): a candidate asks the voters of a quorum for their vote.

v0 flexible, v1 the voter's key and directory and the leader's endpoints (KIP-853), v2 pre-votes.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string, u16, uuid


@message()
class VoteRequestPartitionData:
    partition_index: int = i32()
    replica_epoch: int = i32()
    replica_id: int = i32(entity="broker_id")
    replica_directory_id: bytes = uuid("1+", default=ZERO_UUID)
    voter_directory_id: bytes = uuid("1+", default=ZERO_UUID)
    last_offset_epoch: int = i32()
    last_offset: int = i64()
    pre_vote: bool = boolean("2+", default=False)


@message()
class VoteRequestTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[VoteRequestPartitionData] = array(VoteRequestPartitionData)


@message(api_key=52, versions="0-2", flexible="0+", listeners="controller")
class VoteRequest:
    cluster_id: str | None = string(nullable=True, default=None)
    voter_id: int = i32("1+", default=-1, entity="broker_id")
    topics: list[VoteRequestTopicData] = array(VoteRequestTopicData)


@message()
class VoteResponsePartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()
    vote_granted: bool = boolean()


@message()
class VoteResponseTopicData:
    topic_name: str = string(entity="topic_name")
    partitions: list[VoteResponsePartitionData] = array(VoteResponsePartitionData)


@message()
class NodeEndpoint:
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = u16()


@message(api_key=52, versions="0-2", flexible="0+")
class VoteResponse:
    error_code: int = i16()
    topics: list[VoteResponseTopicData] = array(VoteResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, default=[])
