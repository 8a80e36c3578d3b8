"""EndQuorumEpoch (API key 54). Version 1 has the directories of the successors, and endpoints (KIP-853)."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import end_quorum_epoch as m
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.raft.core.messages import Acknowledged, EndQuorumEpoch
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import Scope


def request(asked: EndQuorumEpoch, scope: Scope) -> m.EndQuorumEpochRequest:
    """The request of a leader that has resigned; each version has its own list of successors."""
    partition = m.EndQuorumEpochRequestPartitionData(
        partition_index=common.PARTITION,
        leader_id=asked.leader_id,
        leader_epoch=asked.epoch,
        preferred_successors=[successor.node_id for successor in asked.successors],
        preferred_candidates=[
            m.ReplicaInfo(candidate_id=successor.node_id, candidate_directory_id=successor.directory_id)
            for successor in asked.successors
        ],
    )
    return m.EndQuorumEpochRequest(
        cluster_id=scope.cluster_id,
        topics=[m.EndQuorumEpochRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            m.LeaderEndpoint(name=name, host=host, port=port)
            for name, (host, port) in asked.endpoints.items()
        ],
    )


def read_request(
    request: m.EndQuorumEpochRequest, scope: Scope
) -> Union[EndQuorumEpoch, m.EndQuorumEpochResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    names = [topic.topic_name for topic in request.topics]
    indexes = [partition.partition_index for partition in partitions]
    error = common.request_error(request.cluster_id, scope, names, indexes)
    if error is not ErrorCode.NONE:
        return refused(request, KafkaError(error))
    [asked] = partitions
    candidates = tuple(
        ReplicaKey(candidate.candidate_id, candidate.candidate_directory_id)
        for candidate in asked.preferred_candidates
    )
    return EndQuorumEpoch(
        asked.leader_epoch,
        asked.leader_id,
        common.endpoints_of(request.leader_endpoints),
        candidates or tuple(ReplicaKey(node_id) for node_id in asked.preferred_successors),
    )


def response(answer: Acknowledged, scope: Scope) -> m.EndQuorumEpochResponse:
    """The answer of a voter."""
    current = answer.current
    partition = m.EndQuorumEpochResponsePartitionData(
        partition_index=common.PARTITION,
        error_code=int(answer.error),
        leader_id=common.told_leader(current),
        leader_epoch=current.epoch,
    )
    topic = m.EndQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return m.EndQuorumEpochResponse(
        error_code=0,
        topics=[topic],
        node_endpoints=common.leader_endpoints(current, scope, m.NodeEndpoint),
    )


def refused(_: m.EndQuorumEpochRequest, error: KafkaError) -> m.EndQuorumEpochResponse:
    """The answer that refuses a request as a whole."""
    return m.EndQuorumEpochResponse(error_code=int(error.code), topics=[])


def read_response(response: m.EndQuorumEpochResponse, scope: Scope) -> Acknowledged:
    """The answer as the core takes it.

    Raises:
        MalformedAnswer: the response is unusable.
    """
    answer = common.only_partition(response.error_code, response.topics)
    current = common.current_of(answer.leader_epoch, answer.leader_id, response.node_endpoints, scope)
    return Acknowledged(error_of(answer.error_code), current)
