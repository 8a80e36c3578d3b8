"""CreateTopics (API key 19): create topics, with a number of partitions or a manual assignment.

v2 is the first served, v4 -1 means the broker's default (KIP-464), v5 the answer shows partitions,
replication factor and configs (KIP-525), v6 quota errors, v7 topic ids. The answer comes when the topic is
committed and the controller's node has published it; other brokers may learn of it later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.controller_mutations import count_mutations
from pykafka_broker.apis.denials import denied_topics, may_on_cluster
from pykafka_broker.apis.needs import on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.config.describe import describe_topic
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.events import CreateTopicResult, CreateTopics, NewTopic
from pykafka_broker.controller.wire import create_topics as wire
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

CONFIGS_SHOWN_VERSION = 5
FIRST_VERSION_WITH_QUOTA_ERRORS = 6


def _refused(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=topic.name, error_code=int(error.code), error_message=error.explanation, configs=[]
            )
            for topic in request.topics
        ]
    )


@handles(
    CreateTopicsRequest,
    versions="2-7",
    needs=[
        partly_on_cluster(AclOperation.CREATE).asked_by_handler()
        | on_topics(AclOperation.CREATE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE_CONFIGS).asked_by_handler(),
    ],
    quota=Quota.CONTROLLER_MUTATION,
    error_response=_refused,
    forwarded=True,
)
async def create_topics(request: CreateTopicsRequest, ctx: AdministrationContext) -> CreateTopicsResponse:
    """Each topic succeeds or fails on its own; topics that the client may not create come last."""
    kept = _denied(request.topics, ctx)
    new = [wire.read_topic(topic) for topic in request.topics if topic.name not in kept]
    counted = count_mutations(_mutations(new, ctx), ctx, strict_since=FIRST_VERSION_WITH_QUOTA_ERRORS)
    event = CreateTopics(tuple(counted.admitted), request.validate_only)
    asked_for = ctx.node.controller.ask(event, request.timeout_ms, ctx.requester)
    results: tuple[CreateTopicResult, ...] = await each_result(event, asked_for)
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    results += tuple(CreateTopicResult(topic.name, over) for topic in counted.refused)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    results += tuple(CreateTopicResult(name, denied, "Authorization failed.") for name in kept)
    hidden = denied_topics(
        ctx,
        AclOperation.DESCRIBE_CONFIGS,
        (result.name for result in results if not result.error),
        is_attempt=False,
    )
    asked = {topic.name: topic for topic in request.topics}
    return CreateTopicsResponse(
        throttle_time_ms=counted.throttle_time_ms,
        topics=[
            _answer(result, asked[result.name], ctx, is_shown=result.name not in hidden) for result in results
        ],
    )


def _denied(topics: Iterable[CreatableTopic], ctx: AdministrationContext) -> Set[str]:
    """The names that the client may not create, except names given twice, which are refused anyway."""
    if may_on_cluster(ctx, AclOperation.CREATE, is_attempt=False):
        return frozenset()
    given = Counter(topic.name for topic in topics)
    once = (name for name, times in given.items() if times == 1 and name != METADATA_TOPIC)
    return denied_topics(ctx, AclOperation.CREATE, once)


def _mutations(topics: Iterable[NewTopic], ctx: AdministrationContext) -> Iterator[tuple[NewTopic, int]]:
    """Each topic with its number of partitions; 0 for a name that is taken or given twice."""
    given = Counter(topic.name for topic in topics)
    taken = ctx.node.metadata.image.topics
    default = ctx.node.configs.current["num.partitions"]
    for topic in topics:
        is_new = topic.name not in taken and given[topic.name] == 1
        yield topic, topic.partition_count(default) if is_new else 0


def _answer(
    result: CreateTopicResult, asked: CreatableTopic, ctx: AdministrationContext, *, is_shown: bool
) -> CreatableTopicResult:
    if not is_shown:
        # A client that may not describe its configs does not see the size of the topic either.
        return CreatableTopicResult(
            name=result.name,
            topic_id=result.topic_id,
            error_code=int(ErrorCode.NONE),
            topic_config_error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            configs=[],
        )
    answer = CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=int(result.error),
        error_message=result.message,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=[],
    )
    if ctx.version >= CONFIGS_SHOWN_VERSION and not result.error:
        overrides = {config.name: config.value for config in asked.configs if config.value is not None}
        answer.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=int(entry.source),
                is_sensitive=entry.is_sensitive,
            )
            for entry in sorted(describe_topic(ctx.node.configs, overrides), key=lambda entry: entry.name)
        ]
    return answer
