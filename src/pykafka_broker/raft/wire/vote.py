"""Vote (API key 52). Version 1 has the voter that is asked (KIP-853), version 2 pre-votes (KIP-996)."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import vote as m
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.raft.core.messages import Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import Scope


def request(asked: Vote, scope: Scope) -> m.VoteRequest:
    """The request of a replica that asks for a vote."""
    voter = asked.voter or ReplicaKey(-1)
    partition = m.VoteRequestPartitionData(
        partition_index=common.PARTITION,
        replica_epoch=asked.epoch,
        replica_id=asked.candidate.node_id,
        replica_directory_id=asked.candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=asked.last_epoch,
        last_offset=asked.end_offset,
        pre_vote=asked.pre_vote,
    )
    topic = m.VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return m.VoteRequest(cluster_id=scope.cluster_id, voter_id=voter.node_id, topics=[topic])


def read_request(request: m.VoteRequest, scope: Scope) -> Union[Vote, m.VoteResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    names = [topic.topic_name for topic in request.topics]
    indexes = [partition.partition_index for partition in partitions]
    error = common.request_error(request.cluster_id, scope, names, indexes)
    if error is not ErrorCode.NONE:
        return refused(request, KafkaError(error))
    [asked] = partitions
    return Vote(
        asked.replica_epoch,
        ReplicaKey(asked.replica_id, asked.replica_directory_id),
        common.meant_voter(request.voter_id, asked.voter_directory_id),
        asked.last_offset_epoch,
        asked.last_offset,
        asked.pre_vote,
    )


def response(answer: VoteAnswer, scope: Scope) -> m.VoteResponse:
    """The answer of a voter."""
    current = answer.current
    partition = m.VoteResponsePartitionData(
        partition_index=common.PARTITION,
        error_code=int(answer.error),
        leader_id=common.told_leader(current),
        leader_epoch=current.epoch,
        vote_granted=answer.granted,
    )
    topic = m.VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return m.VoteResponse(
        error_code=0,
        topics=[topic],
        node_endpoints=common.leader_endpoints(current, scope, m.NodeEndpoint),
    )


def refused(_: m.VoteRequest, error: KafkaError) -> m.VoteResponse:
    """The answer that refuses a request as a whole."""
    return m.VoteResponse(error_code=int(error.code), topics=[])


def read_response(response: m.VoteResponse, scope: Scope) -> VoteAnswer:
    """The answer as the core takes it.

    Raises:
        MalformedAnswer: the response is unusable.
    """
    answer = common.only_partition(response.error_code, response.topics)
    current = common.current_of(answer.leader_epoch, answer.leader_id, response.node_endpoints, scope)
    return VoteAnswer(error_of(answer.error_code), current, answer.vote_granted)
