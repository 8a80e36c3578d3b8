"""DescribeTopicPartitions (API key 75): topics and partitions in pages, with eligible leader replicas
(KIP-966).

v0 only. Topics are in alphabetical order; an answer has at most `response_partition_limit` partitions (capped
by `max.request.partition.size.limit`, at least 1) and a cursor if more are left. No topic list means all
topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.topology import LeaderViews, topic_operations
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS, why_invalid_name
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.cluster.image import PartitionRegistration, TopicImage


def failed(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    """The answer to a request that failed as a whole."""
    return DescribeTopicPartitionsResponse(
        topics=[_refused(topic.name, error.code) for topic in request.topics]
    )


@handles(
    DescribeTopicPartitionsRequest,
    versions="0",
    needs=[on_topics(AclOperation.DESCRIBE).asked_by_handler()],
    error_response=failed,
)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, ctx: RequestContext
) -> DescribeTopicPartitionsResponse:
    """One page, starting at the cursor."""
    image = ctx.node.metadata.image
    cursor = request.cursor
    first_topic = cursor.topic_name if cursor else ""
    asked = [topic.name for topic in request.topics] if request.topics else list(image.topics)
    names = sorted({name for name in asked if name >= first_topic})
    if cursor and (cursor.partition_index < 0 or (request.topics and first_topic not in names)):
        return failed(request, KafkaError(ErrorCode.INVALID_REQUEST))

    left = max(
        1, min(ctx.node.configs.current["max.request.partition.size.limit"], request.response_partition_limit)
    )
    response = DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=[])
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, names, is_attempt=bool(request.topics))
    refused = []
    for name in names:
        if name in hidden:
            if request.topics:
                refused.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                response.topics.append(_unknown(name, ctx))
            continue
        start = cursor.partition_index if cursor and name == first_topic else 0
        end = min(len(topic.partitions), start + left)
        response.topics.append(_described(topic, start, end, ctx))
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        left -= max(0, end - start)
    response.topics += refused
    return response


def _refused(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    """A topic that is not described, whether it exists or not."""
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(error), name=name, topic_id=ZERO_UUID, partitions=[]
    )


def _described(
    topic: TopicImage, start: int, end: int, ctx: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    views = LeaderViews(ctx)
    return DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(topic.partitions[index], views) for index in range(start, end)],
        topic_authorized_operations=topic_operations(topic.name, ctx),
    )


def _partition(
    partition: PartitionRegistration, views: LeaderViews
) -> DescribeTopicPartitionsResponsePartition:
    _, leader_id, offline = views.of(partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=0,
        partition_index=partition.partition_id,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline,
    )


def _unknown(name: str, ctx: RequestContext) -> DescribeTopicPartitionsResponseTopic:
    valid = why_invalid_name(name) is None
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(error),
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=topic_operations(name, ctx),
    )
