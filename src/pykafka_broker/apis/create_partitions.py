"""CreatePartitions (API key 37): give topics more partitions; existing ones stay as they are.

v2 flexible, v3 quota errors. Results come in the order of Apache Kafka's hash sets of names, those of names
that were given twice first: kafkajs throws the first error that it finds.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.cluster.events import NewPartitions
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    CreatePartitionsRequest,
    versions="0-3",
    needs=[on_topics(AclOperation.ALTER)],
    quota=Quota.CONTROLLER_MUTATION,
)
async def create_partitions(
    request: CreatePartitionsRequest, ctx: RequestContext
) -> CreatePartitionsResponse:
    """Each topic succeeds or fails on its own."""
    answered = await ctx.node.controller.create_partitions(
        [
            NewPartitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else tuple(tuple(assignment.broker_ids) for assignment in topic.assignments),
            )
            for topic in request.topics
        ],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    given = Counter(topic.name for topic in request.topics)
    twice = walked((name for name, times in given.items() if times > 1), string_hash)
    order = dict.fromkeys((*twice, *walked(given, string_hash)))
    place = {name: number for number, name in enumerate(order)}
    results = sorted(answered, key=lambda result: place[result.name])
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=result.name, error_code=int(result.error), error_message=result.message
            )
            for result in results
        ]
    )
