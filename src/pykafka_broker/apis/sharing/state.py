"""The common parts of the five APIs of the share coordinator: requests of topics and partitions, each
partition with an answer of its own.

Only brokers send them (CLUSTER_ACTION). As in Apache Kafka 4.3, none checks whether share groups are enabled;
a request without a group, without topics or (except Initialize) with a topic without partitions gets an empty
answer; and of a partition that is named twice only the last answer is returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pykafka_broker.coordinator.share.core.events import Refusal
from pykafka_broker.protocol.topic_partition import SharePartitionKey

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.coordinator.share.core.events import Event, StateResult
    from pykafka_broker.protocol.errors import KafkaError

Answer = TypeVar("Answer")
Result = TypeVar("Result")
#: By topic id, and by partition.
Answers = list[tuple[bytes, list[tuple[int, Answer]]]]


class _Request(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[Any]: ...


async def answers_of(
    request: _Request,
    ctx: RequestContext,
    event_with: Callable[[int, SharePartitionKey, Any, int], Event],
    refused: Callable[[KafkaError], Answer],
    *,
    takes_empty_topics: bool = False,
) -> Answers[Answer]:
    """The answer of each share partition's shard, in the order of the request.

    `event_with(token, key, asked, partition_count)` builds the event of one partition of the request.
    Without `takes_empty_topics` a topic without partitions leaves the answer empty.
    """
    if not request.group_id or not (takes_empty_topics or all(topic.partitions for topic in request.topics)):
        return []
    shares = ctx.node.shares
    asked: dict[SharePartitionKey, Awaitable[Answer]] = {}
    overtaken: list[Awaitable[Answer]] = []
    for topic in request.topics:
        count = ctx.node.metadata.image.partition_count(topic.topic_id)
        for partition in topic.partitions:
            key = SharePartitionKey(request.group_id, topic.topic_id, partition.partition)
            if key in asked:
                overtaken.append(asked[key])
            asked[key] = shares.answer(key, _event(event_with, key, partition, count), refused=refused)
    for answer in overtaken:
        await answer
    answers: dict[bytes, list[tuple[int, Answer]]] = {}
    for key, answer in asked.items():
        answers.setdefault(key.topic_id, []).append((key.partition, await answer))
    return list(answers.items())


def failures(request: _Request, answer: Callable[[Refusal], Answer], error: KafkaError) -> Answers[Answer]:
    """The same error for all partitions of a request."""
    refused = answer(Refusal(error.code, error.message))
    return [
        (topic.topic_id, [(each.partition, refused) for each in topic.partitions]) for topic in request.topics
    ]


def results_of(
    result_type: Callable[..., Result],
    partition_type: Callable[..., object],
    answers: Answers[StateResult],
) -> list[Result]:
    """The results of an answer with only an error for each partition."""
    return [
        result_type(
            topic_id=topic_id,
            partitions=[
                partition_type(partition=each, **error_fields(result.refusal)) for each, result in results
            ],
        )
        for topic_id, results in answers
    ]


def error_fields(refusal: Refusal | None) -> dict[str, Any]:
    """The error code and the message of one partition's answer."""
    if refusal is None:
        return {"error_code": 0, "error_message": None}
    return {"error_code": int(refusal.error), "error_message": refusal.message}


def _event(
    event_with: Callable[[int, SharePartitionKey, Any, int], Event],
    key: SharePartitionKey,
    asked: Any,
    partition_count: int,
) -> Callable[[int], Event]:
    return lambda token: event_with(token, key, asked, partition_count)
