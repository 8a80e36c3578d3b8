"""DescribeQuorum (API key 55): the leader of the metadata log, its voters and observers, and their progress.

v0 flexible, v1 when each replica fetched last and was caught up last (KIP-836), v2 the voters' directories
and endpoints, and error messages (KIP-853). A request must name exactly the partition of the metadata log.

A broker that is sure that there is no leader answers REQUEST_TIMED_OUT at once; Apache Kafka's broker does
after a time-out. Besides the error the answer has what this broker knows: the voters, its own log end offset,
and the last time a leader answered it. `leader_id` is -1, and no other replica has times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles, leaderless
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.raft.wire.common import PARTITION

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, RequestContext
    from pykafka_broker.raft.core.describe import QuorumStatus, ReplicaStatus
    from pykafka_broker.raft.quorum_description import QuorumDescription

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def failed(_request: DescribeQuorumRequest, error: KafkaError) -> DescribeQuorumResponse:
    """The answer if the quorum cannot be described."""
    return DescribeQuorumResponse(error_code=int(error.code), error_message=error.message, topics=[])


def without_leader(request: DescribeQuorumRequest, ctx: RequestContext) -> DescribeQuorumResponse:
    """The answer of a broker that is sure that there is no leader."""
    quorum = ctx.node.forwarding.lost_quorum()
    if quorum is None:
        return failed(request, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    status = quorum.status
    [own] = [replica for replica in (*status.voters, *status.observers) if replica.last_fetch_ms >= 0]
    silence_s = (own.last_fetch_ms - own.last_caught_up_ms) // 1_000
    text = f"No controller leads: none has answered broker {own.key.node_id} for {silence_s} s."
    answer = _answer([(METADATA_TOPIC, [_described(status)])], _nodes(quorum))
    answer.error_code, answer.error_message = int(ErrorCode.REQUEST_TIMED_OUT), text
    return answer


@leaderless(without_leader)
@handles(
    DescribeQuorumRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.DESCRIBE)],
    error_response=failed,
    forwarded=True,
)
async def describe_quorum(
    request: DescribeQuorumRequest, ctx: AdministrationContext
) -> DescribeQuorumResponse:
    """Describe the quorum; a request for anything but the metadata log alone gets only unknown partitions."""
    asked = [
        (topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in request.topics
    ]
    if asked != [(METADATA_TOPIC, [PARTITION])]:
        topics = [
            (name, [_refused(partition, UNKNOWN) for partition in partitions]) for name, partitions in asked
        ]
        return _answer(topics)
    try:
        quorum = await ctx.node.controller.describe_quorum()
    except KafkaError as error:
        if error.code is not ErrorCode.NOT_CONTROLLER:
            return failed(request, error)
        return _answer([(METADATA_TOPIC, [_refused(PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)])])
    return _answer([(METADATA_TOPIC, [_described(quorum.status)])], _nodes(quorum))


def _nodes(quorum: QuorumDescription) -> list[Node]:
    return [
        Node(
            node_id=node_id,
            listeners=[Listener(name=name, host=host, port=port) for name, (host, port) in endpoints.items()],
        )
        for node_id, endpoints in quorum.endpoints.items()
    ]


def _answer(
    topics: Iterable[tuple[str, list[DescribeQuorumResponsePartitionData]]], nodes: Iterable[Node] = ()
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=int(ErrorCode.NONE),
        error_message="",
        topics=[
            DescribeQuorumResponseTopicData(topic_name=name, partitions=partitions)
            for name, partitions in topics
        ],
        nodes=list(nodes),
    )


def _refused(partition: int, error: ErrorCode) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=partition,
        error_code=int(error),
        error_message=error.message,
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def _described(quorum: QuorumStatus) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=PARTITION,
        error_code=int(ErrorCode.NONE),
        error_message="",
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_replica(voter) for voter in quorum.voters],
        observers=[_replica(observer) for observer in quorum.observers],
    )


def _replica(replica: ReplicaStatus) -> ReplicaState:
    return ReplicaState(
        replica_id=replica.key.node_id,
        replica_directory_id=replica.key.directory_id,
        log_end_offset=replica.end_offset,
        last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )
