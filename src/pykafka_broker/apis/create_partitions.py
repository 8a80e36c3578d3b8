"""CreatePartitions (API key 37): give topics more partitions; existing ones stay as they are.

v2 flexible, v3 quota errors. Results are in the order of Apache Kafka's hash sets of names, with names that
were given twice first: kafkajs throws the first error that it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.controller_mutations import count_mutations
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.events import CreatePartitions, CreatePartitionsResult, NewPartitions
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

FIRST_VERSION_WITH_QUOTA_ERRORS = 3


def _refused(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return _response(
        CreatePartitionsResult(each.name, error.code, error.explanation) for each in request.topics
    )


@handles(
    CreatePartitionsRequest,
    versions="0-3",
    needs=[on_topics(AclOperation.ALTER).asked_by_handler()],
    quota=Quota.CONTROLLER_MUTATION,
    error_response=_refused,
    forwarded=True,
)
async def create_partitions(
    request: CreatePartitionsRequest, ctx: AdministrationContext
) -> CreatePartitionsResponse:
    """Each topic succeeds or fails on its own."""
    given = Counter(topic.name for topic in request.topics)
    once = (name for name, times in given.items() if times == 1)
    kept = denied_topics(ctx, AclOperation.ALTER, once)
    asked = [topic for topic in request.topics if topic.name not in kept]
    counted = count_mutations(
        _mutations(asked, given, ctx), ctx, strict_since=FIRST_VERSION_WITH_QUOTA_ERRORS
    )
    event = CreatePartitions(
        tuple(
            NewPartitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else tuple(tuple(assignment.broker_ids) for assignment in topic.assignments),
            )
            for topic in counted.admitted
        ),
        request.validate_only,
    )
    answered = await each_result(event, ctx.node.controller.ask(event, request.timeout_ms, ctx.requester))
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    answered += tuple(CreatePartitionsResult(topic.name, over) for topic in counted.refused)
    answered += tuple(CreatePartitionsResult(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in kept)
    twice = walked((name for name, times in given.items() if times > 1), string_hash)
    all_names = walked(given, string_hash)
    order = dict.fromkeys((*twice, *(name for name in all_names if name in kept), *all_names))
    place = {name: number for number, name in enumerate(order)}
    return _response(sorted(answered, key=lambda result: place[result.name]), counted.throttle_time_ms)


def _mutations(
    topics: Iterable[CreatePartitionsTopic], given: Counter[str], ctx: AdministrationContext
) -> Iterator[tuple[CreatePartitionsTopic, int]]:
    """Each topic with the number of partitions it gets; 0 if the count does not grow, or if the topic is
    unknown or given twice.
    """
    known = ctx.node.metadata.image.topics
    for topic in topics:
        grows = topic.name in known and given[topic.name] == 1
        yield topic, max(0, topic.count - len(known[topic.name].partitions)) if grows else 0


def _response(
    results: Iterable[CreatePartitionsResult], throttle_time_ms: int = 0
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time_ms=throttle_time_ms,
        results=[
            CreatePartitionsTopicResult(
                name=result.name, error_code=int(result.error), error_message=result.message
            )
            for result in results
        ],
    )
