"""Metadata (API key 3): the brokers, and the leaders of partitions.

v1 controller and internal flag, v2 cluster id, v4 auto-creation flag, v5 offline replicas, v7 leader epochs,
v8 authorized operations, v9 flexible, v10 topic ids, v12 lookup by topic id, v13 top-level error.

topics=None asks for every topic and an empty list for none, except at v0, where empty means all. An unknown
topic is created if both the request and `auto.create.topics.enable` allow it. Apache Kafka answers
UNKNOWN_TOPIC_OR_PARTITION while it creates the topic; here that takes about a millisecond, so the first
answer already has the leader. The exception is a topic that was just deleted: the first requests that name it
get UNKNOWN_TOPIC_OR_PARTITION and do not create it, or clients that wait for the deletion would wait for
ever. The controller id is a random alive broker, as in KRaft: clients send controller requests there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics, may_on_cluster
from pykafka_broker.apis.needs import on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import OPERATIONS_NOT_ASKED, AclOperation
from pykafka_broker.apis.topology import LeaderViews, alive_brokers, cluster_operations, topic_operations
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS, why_invalid_name
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.cluster.image import TopicImage

TOPIC_ID_LOOKUP_VERSION = 12


def failed(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    """The answer, without brokers, to a failed or invalid request."""
    code = int(error.code)
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[],
        topics=[
            MetadataResponseTopic(
                error_code=code, name=topic.name or "", topic_id=topic.topic_id, partitions=[]
            )
            for topic in request.topics or ()
        ],
        error_code=code,
    )


@handles(
    MetadataRequest,
    versions="0-13",
    needs=[
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.CREATE).asked_by_handler()
        | partly_on_cluster(AclOperation.CREATE).asked_by_handler(),
    ],
    error_response=failed,
)
def metadata(request: MetadataRequest, ctx: RequestContext) -> Any:
    """Answer at once, or with a coroutine if topics have to be created first."""
    asked = request.topics
    if asked is None or (ctx.version == 0 and not asked):
        topics = ctx.node.metadata.image.topics
        hidden = denied_topics(ctx, AclOperation.DESCRIBE, topics, is_attempt=False)
        shown = [_described(topic, ctx) for name, topic in topics.items() if name not in hidden]
        return _response(shown, [], request, ctx)
    by_id = any(any(topic.topic_id) for topic in asked)
    if (by_id and ctx.version < TOPIC_ID_LOOKUP_VERSION) or (
        not by_id and any(topic.name is None for topic in asked)
    ):
        # A topic without a name and an id, or with an id at v10 or v11, which must not use it: the whole
        # request is refused.
        return failed(request, KafkaError(ErrorCode.INVALID_REQUEST))
    if by_id:
        # One id makes this a look-up by id, in which topics with only a name are ignored. Unknown ids come
        # first, as in Kafka; in a look-up by name unknown names come last.
        ids = dict.fromkeys(topic.topic_id for topic in asked if any(topic.topic_id))
        named = {topic_id: topic.name for topic_id in ids if (topic := _of_id(topic_id, ctx)) is not None}
        hidden = denied_topics(ctx, AclOperation.DESCRIBE, named.values())
        denied = dict.fromkeys(topic_id for topic_id in ids if named.get(topic_id) in hidden)
        by_ids = [_by_id(topic_id, ctx) for topic_id in ids if topic_id not in denied]
        # Answer the id only: names are secret, ids are not.
        refused = [_unknown(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id) for topic_id in denied]
        return _response(sorted(by_ids, key=lambda topic: topic.error_code == 0), refused, request, ctx)
    names = list(dict.fromkeys(topic.name for topic in asked if topic.name is not None))
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, names)
    refused = [_refused(name) for name in names if name in hidden]
    names = [name for name in names if name not in hidden]
    missing = [name for name in names if name not in ctx.node.metadata.image.topics]
    if (
        missing
        and request.allow_auto_topic_creation
        and ctx.node.configs.current["auto.create.topics.enable"]
    ):
        if not may_on_cluster(ctx, AclOperation.CREATE, is_attempt=False):
            kept = denied_topics(ctx, AclOperation.CREATE, missing)
            denied_names = [name for name in missing if name in kept]
            refused = [
                *(_unknown(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, ZERO_UUID) for name in denied_names),
                *refused,
            ]
            missing = [name for name in missing if name not in kept]
            names = [name for name in names if name not in kept]
        return _after_creation(missing, names, refused, request, ctx)
    return _response(_by_names(names, ctx), refused, request, ctx)


async def _after_creation(
    missing: list[str],
    names: list[str],
    refused: list[MetadataResponseTopic],
    request: MetadataRequest,
    ctx: RequestContext,
) -> MetadataResponse:
    await ctx.node.topic_creation.create_missing(missing)
    return _response(_by_names(names, ctx), refused, request, ctx)


def _by_names(names: list[str], ctx: RequestContext) -> list[MetadataResponseTopic]:
    return sorted((_by_name(name, ctx) for name in names), key=lambda topic: topic.error_code != 0)


def _by_name(name: str, ctx: RequestContext) -> MetadataResponseTopic:
    topic = ctx.node.metadata.image.topics.get(name)
    if topic is not None:
        return _described(topic, ctx)
    valid = why_invalid_name(name) is None
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return _unknown(error, name, ZERO_UUID)


def _refused(name: str) -> MetadataResponseTopic:
    """A topic that the client may not describe, whether it exists or not."""
    return MetadataResponseTopic(
        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        name=name,
        topic_id=ZERO_UUID,
        is_internal=False,
        partitions=[],
    )


def _of_id(topic_id: bytes, ctx: RequestContext) -> TopicImage | None:
    return ctx.node.metadata.image.topic_by_id(topic_id)


def _by_id(topic_id: bytes, ctx: RequestContext) -> MetadataResponseTopic:
    topic = _of_id(topic_id, ctx)
    if topic is not None:
        return _described(topic, ctx)
    return _unknown(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)


def _unknown(error: ErrorCode, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=int(error),
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
    )


def _described(topic: TopicImage, ctx: RequestContext) -> MetadataResponseTopic:
    partitions, views = [], LeaderViews(ctx)
    for partition in topic.partitions.values():
        error, leader_id, offline = views.of(partition)
        if error is ErrorCode.LISTENER_NOT_FOUND and ctx.version < 6:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        replicas, isr = list(partition.replicas), list(partition.isr)
        if ctx.version == 0 and offline:
            # v0 has no list of offline replicas: it lists only live ones, and has an error if some are not.
            replicas = [replica for replica in replicas if replica not in offline]
            isr = [replica for replica in isr if replica not in offline]
            error = ErrorCode.REPLICA_NOT_AVAILABLE if error is ErrorCode.NONE else error
        partitions.append(
            MetadataResponsePartition(
                error_code=int(error),
                partition_index=partition.partition_id,
                leader_id=leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                offline_replicas=offline,
            )
        )
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )


def _response(
    topics: list[MetadataResponseTopic],
    refused: list[MetadataResponseTopic],
    request: MetadataRequest,
    ctx: RequestContext,
) -> MetadataResponse:
    """The answer; topics that the client may not describe or create come last."""
    if request.include_topic_authorized_operations:
        for topic in topics:
            # The operations allowed on a name do not depend on whether the topic exists.
            if topic.name is not None:
                topic.topic_authorized_operations = topic_operations(topic.name, ctx)
    brokers = alive_brokers(ctx)
    asked = request.include_cluster_authorized_operations and 8 <= ctx.version <= 10
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
            for broker, host, port in brokers
        ],
        cluster_id=ctx.node.metadata.image.cluster_id,
        controller_id=ctx.node.metadata.random_alive_broker_id(),
        topics=[*topics, *refused],
        cluster_authorized_operations=cluster_operations(ctx) if asked else OPERATIONS_NOT_ASKED,
        error_code=0,
    )
