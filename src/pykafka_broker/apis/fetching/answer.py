"""The answer to a Fetch: which partitions it lists, errors, and the leaders of partitions led elsewhere.

A consumer over its quota gets an answer without partitions, and repeats the fetch after the throttle time.
The processing time of a fetch counts from its next fetch on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.fetching.replica import replica_id_of
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.protocol.compile import encoded_size
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
    from pykafka_broker.apis.fetching.kept_waits import KeptWaits
    from pykafka_broker.apis.fetching.sessions import FetchContext, WantedPartition

LEADER_HINTS_VERSION = 16
#: Apache Kafka counts the length of an answer as a part of it.
FRAME_LENGTH_BYTES = 4
#: Errors with which the answer names the leader.
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
    """The answer for an unknown partition, the only error with an empty list of aborted transactions."""
    answer = failed(wanted, error)
    answer.aborted_transactions = []
    return answer


def refused_whole(request: FetchRequest, error: ErrorCode) -> FetchResponse:
    """The answer to a refused request: the error is on the request and, if topics have names and not ids (up
    to v12), on each partition too.
    """
    topics = []
    if not any(any(topic.topic_id) for topic in request.topics):
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


def _answered(replica_id: int, listed: Answers, kept: KeptWaits | None, ctx: RequestContext) -> None:
    """Count the bytes sent to a follower, and settle the partitions of which the follower was told only
    offsets.
    """
    for wanted, data in listed:
        partition = ctx.node.partitions.led(wanted.topic, wanted.partition) if wanted.topic else None
        if partition is None:
            continue
        if data.records:
            partition.counts.replication_bytes_out += len(data.records)
            if replica_id in partition.adding:
                partition.counts.reassignment_bytes_out += len(data.records)
            partition.throttle.count(len(data.records))
        elif kept is not None and not partition.expects(replica_id):
            kept.waits.told(partition.log)


def _consumed(listed: Answers, ctx: RequestContext) -> None:
    """Count the bytes sent to a consumer."""
    for wanted, data in listed:
        if data.records and (counts := ctx.node.partitions.counts.topics.get(wanted.topic or "")):
            counts.bytes_out += len(data.records)


def response(
    request: FetchRequest, context: FetchContext, answers: Answers, ctx: RequestContext
) -> FetchResponse:
    replica_id = replica_id_of(request)
    is_replica = replica_id >= 0
    if not is_replica and ctx.node.quotas.is_active and (throttle_ms := _throttle_ms(context, answers, ctx)):
        error, session_id = context.finish_empty()
        return FetchResponse(
            throttle_time_ms=throttle_ms, error_code=int(error), session_id=session_id, responses=[]
        )
    error, session_id, listed = context.finish(answers)
    if is_replica:
        _answered(replica_id, listed, context.kept, ctx)
    else:
        _consumed(listed, ctx)
    response = FetchResponse(
        throttle_time_ms=0, error_code=int(error), session_id=session_id, responses=_topics(listed)
    )
    if ctx.version >= LEADER_HINTS_VERSION:
        elsewhere = [(w.topic, w.partition, data) for w, data in listed if data.error_code in LED_ELSEWHERE]
        endpoints = LEADER_HINTS.add(elsewhere, ctx) if elsewhere else []
        # Followers know the addresses of the other brokers.
        response.node_endpoints = [] if is_replica else endpoints
    return response


def _throttle_ms(context: FetchContext, answers: Answers, ctx: RequestContext) -> int:
    """How long the consumer has to wait; the bytes of its answer are counted only if this is 0."""
    record = ctx.node.quotas.record
    answer = FetchResponse(throttle_time_ms=0, session_id=0, responses=_topics(context.listed(answers)))
    size = FRAME_LENGTH_BYTES + encoded_size(answer, ctx.version)
    throttle_ms = max(record(Quota.REQUEST, ctx, 0), record(Quota.FETCH, ctx, size))
    if throttle_ms:
        record(Quota.FETCH, ctx, -size)
    return throttle_ms


def _topics(listed: Answers) -> list[FetchableTopicResponse]:
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
    return topics
