"""FetchSnapshot (API key 59). Version 1 has the directory of the replica, and endpoints (KIP-853)."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import fetch_snapshot as m
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.messages import FetchSnapshot, FetchSnapshotAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import MalformedAnswer, Scope

#: The snapshot id in an answer without a snapshot.
NO_SNAPSHOT = SnapshotId(-1, -1)


def request(asked: FetchSnapshot, scope: Scope) -> m.FetchSnapshotRequest:
    """The request of a follower for a part of a snapshot."""
    partition = m.FetchSnapshotRequestPartitionSnapshot(
        partition=common.PARTITION,
        current_leader_epoch=asked.epoch,
        snapshot_id=m.SnapshotId(end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch),
        position=asked.position,
        replica_directory_id=asked.replica.directory_id,
    )
    return m.FetchSnapshotRequest(
        cluster_id=scope.cluster_id,
        replica_id=asked.replica.node_id,
        max_bytes=asked.max_bytes,
        topics=[m.FetchSnapshotRequestTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def read_request(
    request: m.FetchSnapshotRequest, scope: Scope
) -> Union[FetchSnapshot, m.FetchSnapshotResponse]:
    """The request as the core takes it, or the answer that refuses it.

    Unlike in the other requests, an unknown topic is an error of its partition, not an INVALID_REQUEST.
    """
    if request.cluster_id is not None and request.cluster_id != scope.cluster_id:
        return refused(request, KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID))
    names = [topic.name for topic in request.topics]
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    if names != [METADATA_TOPIC] or [p.partition for p in partitions] != [common.PARTITION]:
        return m.FetchSnapshotResponse(
            error_code=0,
            topics=[
                m.FetchSnapshotResponseTopicSnapshot(
                    name=topic.name,
                    partitions=[
                        _partition(partition.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
    [asked] = partitions
    return FetchSnapshot(
        asked.current_leader_epoch,
        ReplicaKey(request.replica_id, asked.replica_directory_id),
        SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        asked.position,
        request.max_bytes,
    )


def _partition(
    index: int, error: ErrorCode, snapshot_id: SnapshotId = NO_SNAPSHOT
) -> m.FetchSnapshotResponsePartitionSnapshot:
    return m.FetchSnapshotResponsePartitionSnapshot(
        index=index,
        error_code=int(error),
        snapshot_id=m.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        size=0,
        position=0,
        unaligned_records=b"",
    )


def response(answer: FetchSnapshotAnswer, scope: Scope, data: bytes) -> m.FetchSnapshotResponse:
    """The answer of the leader; `data` are the bytes of the snapshot that it names."""
    current = answer.current
    partition = _partition(common.PARTITION, answer.error, answer.snapshot_id or NO_SNAPSHOT)
    partition.size, partition.position = answer.size_bytes, answer.position
    partition.unaligned_records = data
    partition.current_leader = m.LeaderIdAndEpoch(
        leader_id=common.told_leader(current), leader_epoch=current.epoch
    )
    topic = m.FetchSnapshotResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return m.FetchSnapshotResponse(
        error_code=0,
        topics=[topic],
        node_endpoints=common.leader_endpoints(current, scope, m.NodeEndpoint),
    )


def refused(_: m.FetchSnapshotRequest, error: KafkaError) -> m.FetchSnapshotResponse:
    """The answer that refuses a request as a whole."""
    return m.FetchSnapshotResponse(error_code=int(error.code), topics=[])


def read_response(response: m.FetchSnapshotResponse, scope: Scope) -> FetchSnapshotAnswer:
    """The answer as the core takes it.

    Raises:
        MalformedAnswer: the response is unusable.
    """
    answer = common.only_partition(response.error_code, response.topics)
    leader = answer.current_leader
    if leader is None:
        raise MalformedAnswer("no leader epoch in the answer to a FetchSnapshot")
    return FetchSnapshotAnswer(
        error_of(answer.error_code),
        common.current_of(leader.leader_epoch, leader.leader_id, response.node_endpoints, scope),
        SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch),
        answer.size,
        answer.position,
        data=bytes(answer.unaligned_records or b""),
    )
