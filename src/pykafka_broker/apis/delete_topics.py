"""DeleteTopics (API key 20): remove topics by name, or from v6 on by id.

v1 is the first served, v4 flexible, v5 error messages, v6 topic ids (KIP-516). `delete.topic.enable=false`
refuses: TOPIC_DELETION_DISABLED from v3 on, INVALID_REQUEST before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.controller_mutations import count_mutations
from pykafka_broker.apis.denials import denied_topics, may_on_cluster
from pykafka_broker.apis.needs import on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.events import DeleteTopicResult, DeleteTopics
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

FIRST_VERSION_WITH_QUOTA_ERRORS = 5
TOPIC_ID_VERSION = 6

#: A topic to delete: its name and a zero id, or None and its id.
Wanted = tuple[str | None, bytes]


def _refused(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    wanted += [(name, ZERO_UUID) for name in request.topic_names]
    return _response(DeleteTopicResult(*topic, error.code) for topic in wanted)


@handles(
    DeleteTopicsRequest,
    versions="1-6",
    needs=[
        partly_on_cluster(AclOperation.DELETE).asked_by_handler()
        | on_topics(AclOperation.DESCRIBE).asked_by_handler(),
        partly_on_cluster(AclOperation.DELETE).asked_by_handler()
        | on_topics(AclOperation.DELETE).asked_by_handler(),
    ],
    quota=Quota.CONTROLLER_MUTATION,
    error_response=_refused,
    forwarded=True,
)
async def delete_topics(request: DeleteTopicsRequest, ctx: AdministrationContext) -> DeleteTopicsResponse:
    """Each topic succeeds or fails on its own; the answer comes when the metadata has them no more."""
    wanted: list[Wanted]
    if ctx.version < TOPIC_ID_VERSION:
        wanted = [(name, ZERO_UUID) for name in request.topic_names]
    else:
        wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    if not ctx.node.configs.current["delete.topic.enable"]:
        error = ErrorCode.INVALID_REQUEST if ctx.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        return _response(DeleteTopicResult(*topic, error) for topic in wanted)
    kept = _denied(wanted, ctx)
    allowed = [topic for topic in wanted if topic not in kept] if kept else wanted
    counted = count_mutations(_mutations(allowed, ctx), ctx, strict_since=FIRST_VERSION_WITH_QUOTA_ERRORS)
    event = DeleteTopics(tuple(counted.admitted))
    asked = ctx.node.controller.ask(event, request.timeout_ms, ctx.requester)
    results: tuple[DeleteTopicResult, ...] = await each_result(event, asked)
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    results += tuple(DeleteTopicResult(*_in_full(topic, ctx), over) for topic in counted.refused)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    results += tuple(DeleteTopicResult(*shown, denied, denied.message) for shown in kept.values())
    return _response(results, counted.throttle_time_ms)


def _denied(wanted: list[Wanted], ctx: AdministrationContext) -> dict[Wanted, Wanted]:
    """The topics that the client may not delete, except those given twice, and the names and ids to answer.
    If the client may not describe a topic, the topic's name is secret, but its id is not.
    """
    if may_on_cluster(ctx, AclOperation.DELETE, is_attempt=False):
        return {}
    named: dict[Wanted, str] = {}
    for topic, times in Counter(wanted).items():
        name, topic_id = topic
        known = ctx.node.metadata.image.topic_by_id(topic_id) if name is None else None
        if times == 1 and (known is not None or (name is not None and not any(topic_id))):
            named[topic] = known.name if known is not None else str(name)
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, named.values())
    topics = ctx.node.metadata.image.topics
    deletable = [name for name in named.values() if name not in hidden and name in topics]
    kept = hidden | denied_topics(ctx, AclOperation.DELETE, deletable)
    return {
        (asked_name, topic_id): (None if asked_name is None and name in hidden else name, topic_id)
        for (asked_name, topic_id), name in named.items()
        if name in kept
    }


def _in_full(wanted: Wanted, ctx: AdministrationContext) -> Wanted:
    """The name and the id of a topic, if it exists."""
    image = ctx.node.metadata.image
    name, topic_id = wanted
    topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
    return wanted if topic is None else (topic.name, topic.topic_id)


def _mutations(wanted: list[Wanted], ctx: AdministrationContext) -> Iterator[tuple[Wanted, int]]:
    """Each topic with its number of partitions; 0 if it is unknown, or named twice, by name or id."""
    image = ctx.node.metadata.image
    topics = [
        image.topic_by_id(topic_id) if name is None else image.topics.get(name) for name, topic_id in wanted
    ]
    times = Counter(topic.topic_id for topic in topics if topic is not None)
    for one, topic in zip(wanted, topics, strict=True):
        yield one, 0 if topic is None or times[topic.topic_id] > 1 else len(topic.partitions)


def _response(results: Iterable[DeleteTopicResult], throttle_time_ms: int = 0) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time_ms=throttle_time_ms,
        responses=[
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_code=int(result.error),
                error_message=result.message,
            )
            for result in results
        ],
    )
