"""The answer to a Fetch: which partitions it lists, errors, and the leaders of partitions led elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.fetch_sessions import TOPIC_ID_VERSION
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.fetch_sessions import FetchContext, WantedPartition

LEADER_HINTS_VERSION = 16
#: Errors beside which the answer says who leads.
LED_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
LEADER_HINTS = LeaderHints(LeaderIdAndEpoch, NodeEndpoint)

Answers = list[tuple["WantedPartition", PartitionData]]


def failed(wanted: WantedPartition, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=wanted.partition,
        error_code=int(error),
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def unknown(wanted: WantedPartition, error: ErrorCode) -> PartitionData:
    """The answer for a partition that does not exist, where alone Kafka gives an empty aborted list."""
    answer = failed(wanted, error)
    answer.aborted_transactions = []
    return answer


def replica_id_of(request: FetchRequest) -> int:
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id


def broker_epoch_of(request: FetchRequest) -> int:
    """The registration in which a follower fetches, -1 if the request does not tell."""
    return -1 if request.replica_state is None else request.replica_state.replica_epoch


def refused_whole(request: FetchRequest, error: ErrorCode, ctx: RequestContext) -> FetchResponse:
    """The answer when the request itself is at fault."""
    topics = []
    if ctx.version < TOPIC_ID_VERSION:
        topics = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=asked.partition,
                        error_code=int(error),
                        high_watermark=-1,
                        aborted_transactions=[],
                        records=b"",
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return FetchResponse(error_code=int(error), session_id=request.session_id, responses=topics)


def _count_sent(listed: Answers, ctx: RequestContext) -> None:
    """Count what a follower is sent."""
    for wanted, data in listed:
        if data.records and wanted.topic is not None:
            partition = ctx.node.partitions.led(wanted.topic, wanted.partition)
            if partition is not None:
                partition.sent(len(data.records))


def response(
    request: FetchRequest, context: FetchContext, answers: Answers, ctx: RequestContext
) -> FetchResponse:
    error, session_id, listed = context.finish(answers)
    if replica_id_of(request) >= 0:
        _count_sent(listed, ctx)
    topics: list[FetchableTopicResponse] = []
    last: object = None
    for wanted, data in listed:
        identity = (wanted.topic, wanted.topic_id)
        if not topics or identity != last:
            topics.append(
                FetchableTopicResponse(topic=wanted.topic or "", topic_id=wanted.topic_id, partitions=[])
            )
            last = identity
        topics[-1].partitions.append(data)
    response = FetchResponse(
        throttle_time_ms=0, error_code=int(error), session_id=session_id, responses=topics
    )
    if ctx.version >= LEADER_HINTS_VERSION:
        elsewhere = [(w.topic, w.partition, data) for w, data in listed if data.error_code in LED_ELSEWHERE]
        endpoints = LEADER_HINTS.add(elsewhere, ctx) if elsewhere else []
        # Followers know where the other brokers are.
        response.node_endpoints = [] if replica_id_of(request) >= 0 else endpoints
    return response
