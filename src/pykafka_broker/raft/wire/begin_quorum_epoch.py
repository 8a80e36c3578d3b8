"""BeginQuorumEpoch (API key 53). Version 1 has the voter asked and the leader's endpoints (KIP-853)."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import begin_quorum_epoch as m
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.raft.core.messages import Acknowledged, BeginQuorumEpoch
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import Scope


def request(asked: BeginQuorumEpoch, scope: Scope) -> m.BeginQuorumEpochRequest:
    """The request of a leader."""
    voter = asked.voter or ReplicaKey(-1)
    partition = m.BeginQuorumEpochRequestPartitionData(
        partition_index=common.PARTITION,
        voter_directory_id=voter.directory_id,
        leader_id=asked.leader_id,
        leader_epoch=asked.epoch,
    )
    return m.BeginQuorumEpochRequest(
        cluster_id=scope.cluster_id,
        voter_id=voter.node_id,
        topics=[m.BeginQuorumEpochRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            m.LeaderEndpoint(name=name, host=host, port=port)
            for name, (host, port) in asked.endpoints.items()
        ],
    )


def read_request(
    request: m.BeginQuorumEpochRequest, scope: Scope
) -> Union[BeginQuorumEpoch, m.BeginQuorumEpochResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    names = [topic.topic_name for topic in request.topics]
    indexes = [partition.partition_index for partition in partitions]
    error = common.request_error(request.cluster_id, scope, names, indexes)
    if error is not ErrorCode.NONE:
        return refused(request, KafkaError(error))
    [asked] = partitions
    return BeginQuorumEpoch(
        asked.leader_epoch,
        asked.leader_id,
        common.endpoints_of(request.leader_endpoints),
        common.meant_voter(request.voter_id, asked.voter_directory_id),
    )


def response(answer: Acknowledged, scope: Scope) -> m.BeginQuorumEpochResponse:
    """The answer of a voter."""
    current = answer.current
    partition = m.BeginQuorumEpochResponsePartitionData(
        partition_index=common.PARTITION,
        error_code=int(answer.error),
        leader_id=common.told_leader(current),
        leader_epoch=current.epoch,
    )
    topic = m.BeginQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return m.BeginQuorumEpochResponse(
        error_code=0,
        topics=[topic],
        node_endpoints=common.leader_endpoints(current, scope, m.NodeEndpoint),
    )


def refused(_: m.BeginQuorumEpochRequest, error: KafkaError) -> m.BeginQuorumEpochResponse:
    """The answer that refuses a request as a whole."""
    return m.BeginQuorumEpochResponse(error_code=int(error.code), topics=[])


def read_response(response: m.BeginQuorumEpochResponse, scope: Scope) -> Acknowledged:
    """The answer as the core takes it.

    Raises:
        MalformedAnswer: the response is unusable.
    """
    answer = common.only_partition(response.error_code, response.topics)
    current = common.current_of(answer.leader_epoch, answer.leader_id, response.node_endpoints, scope)
    return Acknowledged(error_of(answer.error_code), current)
