"""Produce (API key 0): append record batches to partitions this node leads.

v3 is the first served; ApiVersions lists 0 because a librdkafka release needs to see it (KAFKA-18659). v7
zstd, v8 per-record errors, v9 flexible, v10 leader hints (KIP-951), v11 transaction errors (KIP-890), v12
implicit partition add, v13 topic ids.

Appending is the ordered part and happens before the handler returns. With acks=1 and acks=all the answer
waits (`Later`) for partitions that may not acknowledge their batch yet (`Committing.acknowledged`), while the
next request of the connection may start. With acks=0 there is no answer, and an error closes the connection
so that the producer refreshes its metadata.

A transaction's first batch in a partition waits for the transaction coordinator (KIP-890): up to v11 the
coordinator confirms that the partition was added, from v12 on it adds the partition. The connection waits
meanwhile, so that no later batch is appended first. Further batches of the transaction need no coordinator.

This file has the order of events, `producing/partition.py` one partition's batch, `producing/transactions.py`
and `producing/verification.py` the batches of transactions, `producing/answer.py` the response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import Later, handles
from pykafka_broker.apis.denials import denied_topics, denied_transactional_ids
from pykafka_broker.apis.needs import on_topics, on_transactional_ids
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.apis.producing.answer import answer_to, failed, name_of, refused_whole
from pykafka_broker.apis.producing.partition import Pending, produce_to, unanswered
from pykafka_broker.apis.producing.transactions import has_transactional_batch, transactional_batches
from pykafka_broker.apis.producing.verification import (
    NOTHING_TO_VERIFY,
    Refusal,
    Verification,
    finish_verification,
    start_verification,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
    TopicProduceResponse,
)
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    ProduceRequest,
    versions="3-13",
    needs=[
        on_transactional_ids(AclOperation.WRITE).asked_by_handler(),
        on_topics(AclOperation.WRITE).asked_by_handler(),
    ],
    quota=Quota.PRODUCE,
    advertised_min_version=0,
    error_response=failed,
)
def produce(request: ProduceRequest, ctx: RequestContext) -> Any:
    """Append each partition's batch, which succeeds or fails on its own."""
    topics = _each_partition_once(request.topic_data)
    denied = _denied(topics, ctx)
    try:
        if not has_transactional_batch(request):
            nothing = Verification(refusals=denied) if denied else NOTHING_TO_VERIFY
            return _appended(topics, request, ctx, nothing)
        transactional_id = request.transactional_id
        if transactional_id is None or denied_transactional_ids(ctx, AclOperation.WRITE, (transactional_id,)):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        batches = transactional_batches(topics, ctx)
        started = start_verification((batch for batch in batches if batch[0] not in denied), ctx)
        started = started._replace(refusals={**started.refusals, **denied})
    except KafkaError as error:
        return refused_whole(topics, request, error, ctx)
    if not started.guards:
        return _appended(topics, request, ctx, started)
    for topic in topics:
        for data in topic.partition_data:
            # Copy: while the coordinator is asked the receive buffer is used for other requests.
            data.records = data.records and bytearray(data.records)
    return _verified(topics, request, transactional_id, started, ctx)


def _denied(topics: list[TopicProduceData], ctx: RequestContext) -> Mapping[TopicPartition, Refusal]:
    """The partitions of topics that the client may not write to."""
    if ctx.node.authorizer is ALLOW_ALL:
        return NOTHING_TO_VERIFY.refusals
    named = [(name_of(topic, ctx), topic) for topic in topics]
    hidden = denied_topics(ctx, AclOperation.WRITE, (name for name, _ in named if name is not None))
    return {
        TopicPartition(name, data.index): Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for name, topic in named
        if name is not None and name in hidden
        for data in topic.partition_data
    }


async def _verified(
    topics: list[TopicProduceData],
    request: ProduceRequest,
    transactional_id: str,
    started: Verification,
    ctx: RequestContext,
) -> Any:
    """Ask the transaction coordinator, then append."""
    verification = await finish_verification(started, transactional_id, ctx)
    answer = _appended(topics, request, ctx, verification)
    if isinstance(answer, Later):
        return await answer.awaitable
    return await answer if isinstance(answer, Coroutine) else answer


#: A batch that waits for a file: the list and the index of its answer, and the answer.
_Late = tuple[list[PartitionProduceResponse], int, Awaitable[PartitionProduceResponse]]


def _appended(
    topics: list[TopicProduceData], request: ProduceRequest, ctx: RequestContext, verification: Verification
) -> Any:
    """Append all batches and return the answer; a coroutine if files have to be created first."""
    pending: Pending = []
    answers: list[TopicProduceResponse] = []
    late: list[_Late] = []
    for topic in topics:
        answered: list[PartitionProduceResponse] = []
        answers.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answered)
        )
        name = name_of(topic, ctx)
        for data in topic.partition_data:
            answer = produce_to(name, data, request, ctx, pending, verification)
            if not isinstance(answer, PartitionProduceResponse):
                late.append((answered, len(answered), answer))
                answer = unanswered(data.index)
            answered.append(answer)
    if late:
        return _appended_later(late, answers, request, ctx, pending)
    return answer_to(answers, request, ctx, pending)


async def _appended_later(
    late: list[_Late],
    answers: list[TopicProduceResponse],
    request: ProduceRequest,
    ctx: RequestContext,
    pending: Pending,
) -> Any:
    """The answer when all batches are appended. Their files are created concurrently: one by one, each would
    wake the fetches of all followers, and the next would wait for these fetches.
    """
    for answered, position, answer in late:
        answered[position] = await answer
    response = answer_to(answers, request, ctx, pending)
    return await response.awaitable if isinstance(response, Later) else response


def _each_partition_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """The batch of each partition; if a partition is named twice, the last batch counts, as in Kafka."""
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return topics
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        for data in topic.partition_data:
            merged.setdefault((topic.name, topic.topic_id), {})[data.index] = data
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]
