"""Fetch (API key 1) of the metadata log, by replicas and by readers that replicate nothing.

Version 13 names the topic by its id. Version 17 has the directory of the replica (KIP-853), version 18 the
high watermark that it knows (KIP-1166). As in Kafka a replica sends a `min_bytes` of 0 and uses no session.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, error_of
from pykafka_broker.protocol.messages import fetch as m
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC, METADATA_TOPIC_ID
from pykafka_broker.raft.core.log_view import EpochEnd, SnapshotId
from pykafka_broker.raft.core.messages import Fetch, FetchAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import MalformedAnswer, Scope
from pykafka_broker.raft.wire.fetched import fetched_batches


def request(asked: Fetch, scope: Scope, max_bytes: int) -> m.FetchRequest:
    """The request of a replica for records."""
    partition = m.FetchPartition(
        partition=common.PARTITION,
        current_leader_epoch=asked.epoch,
        fetch_offset=asked.offset,
        last_fetched_epoch=asked.last_epoch,
        partition_max_bytes=0,
        replica_directory_id=asked.replica.directory_id,
        high_watermark=asked.high_watermark,
    )
    return m.FetchRequest(
        cluster_id=scope.cluster_id,
        replica_id=asked.replica.node_id,
        replica_state=m.ReplicaState(replica_id=asked.replica.node_id),
        max_wait_ms=asked.max_wait_ms,
        min_bytes=0,
        max_bytes=max_bytes,
        topics=[m.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def read_request(request: m.FetchRequest, scope: Scope) -> Union[Fetch, m.FetchResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    names = [
        METADATA_TOPIC if topic.topic_id == METADATA_TOPIC_ID else topic.topic for topic in request.topics
    ]
    indexes = [partition.partition for partition in partitions]
    error = common.request_error(request.cluster_id, scope, names, indexes)
    if error is not ErrorCode.NONE:
        return m.FetchResponse(error_code=int(error), responses=[])
    [asked] = partitions
    state = request.replica_state
    node_id = request.replica_id if state is None else state.replica_id
    return Fetch(
        asked.current_leader_epoch,
        ReplicaKey(node_id, asked.replica_directory_id),
        asked.fetch_offset,
        asked.last_fetched_epoch,
        request.max_wait_ms,
        asked.high_watermark,
    )


def response(answer: FetchAnswer, scope: Scope, records: Buffer) -> m.FetchResponse:
    """The answer of the leader; `records` are the batches from `answer.read_from` on."""
    current = answer.current
    partition = m.PartitionData(
        partition_index=common.PARTITION,
        error_code=int(answer.error),
        high_watermark=-1 if answer.high_watermark is None else answer.high_watermark,
        log_start_offset=answer.start_offset,
        current_leader=m.LeaderIdAndEpoch(leader_id=common.told_leader(current), leader_epoch=current.epoch),
        aborted_transactions=[],
        records=records,
    )
    if answer.diverging is not None:
        epoch, end_offset = answer.diverging
        partition.diverging_epoch = m.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if answer.snapshot_id is not None:
        end_offset, epoch = answer.snapshot_id
        partition.snapshot_id = m.SnapshotId(end_offset=end_offset, epoch=epoch)
    topic = m.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return m.FetchResponse(
        responses=[topic], node_endpoints=common.leader_endpoints(current, scope, m.NodeEndpoint)
    )


def read_response(response: m.FetchResponse, scope: Scope) -> FetchAnswer:
    """The answer as the core takes it, with its whole batches.

    Raises:
        MalformedAnswer: the response is unusable.
    """
    answer = common.only_partition(response.error_code, response.responses)
    leader = answer.current_leader
    if leader is None:
        raise MalformedAnswer("no leader epoch in the answer to a Fetch")
    current = common.current_of(leader.leader_epoch, leader.leader_id, response.node_endpoints, scope)
    diverging, snapshot = answer.diverging_epoch, answer.snapshot_id
    return FetchAnswer(
        error_of(answer.error_code),
        current,
        None if answer.high_watermark < 0 else answer.high_watermark,
        answer.log_start_offset,
        None if diverging is None or diverging.epoch < 0 else EpochEnd(diverging.epoch, diverging.end_offset),
        None if snapshot is None or snapshot.epoch < 0 else SnapshotId(snapshot.end_offset, snapshot.epoch),
        batches=fetched_batches(answer.records),
    )
