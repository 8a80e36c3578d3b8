"""OffsetForLeaderEpoch (API key 23): the end of a leader epoch, for readers to detect truncation (KIP-320).

v2 is the first served (current leader epoch), v3 replica id, v4 flexible. An unknown or a future epoch is no
error: epoch -1, end offset -1.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics, may_on_cluster
from pykafka_broker.apis.fetching.followed import followed
from pykafka_broker.apis.needs import on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from pykafka_broker.replication.core.access import check_leader_epoch

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.partitions import HeldPartition


def failed(request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    """The answer to a request that failed as a whole."""
    return OffsetForLeaderEpochResponse(topics=[_refused(topic, error.code) for topic in request.topics])


@handles(
    OffsetForLeaderEpochRequest,
    versions="2-4",
    needs=[
        partly_on_cluster(AclOperation.CLUSTER_ACTION).asked_by_handler()
        | on_topics(AclOperation.DESCRIBE).asked_by_handler()
    ],
    error_response=failed,
)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, ctx: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Answer every partition on its own; topics that the client may not describe come last."""
    hidden: Set[str] = frozenset()
    if not may_on_cluster(ctx, AclOperation.CLUSTER_ACTION, is_attempt=False):
        hidden = denied_topics(ctx, AclOperation.DESCRIBE, (topic.topic for topic in request.topics))
    topics = [
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[_epoch_end(topic.topic, asked, ctx) for asked in topic.partitions],
        )
        for topic in request.topics
        if topic.topic not in hidden
    ]
    topics += [
        _refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for topic in request.topics
        if topic.topic in hidden
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


def _refused(topic: OffsetForLeaderTopic, error: ErrorCode) -> OffsetForLeaderTopicResult:
    return OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[
            EpochEndOffset(error_code=int(error), partition=asked.partition) for asked in topic.partitions
        ],
    )


def _epoch_end(topic: str, asked: OffsetForLeaderPartition, ctx: RequestContext) -> EpochEndOffset:
    partitions, epoch = ctx.node.partitions, asked.current_leader_epoch
    try:
        partition: HeldPartition | None = partitions.led(topic, asked.partition)
        if partition is None:
            partition = followed(partitions, topic, asked.partition, epoch, from_any_replica=False)
        check_leader_epoch(partition.leader_epoch, epoch)
    except KafkaError as error:
        return EpochEndOffset(error_code=int(error.code), partition=asked.partition)
    epoch, end_offset = partition.log.reader.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(error_code=0, partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
