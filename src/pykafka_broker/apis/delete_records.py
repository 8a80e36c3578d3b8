"""DeleteRecords (API key 21): move a partition's log start offset forward.

v1 as v0, v2 flexible. Offset -1 means the high watermark. Records below the new start are never served again;
whole segments below it are deleted later. The answer comes when every replica on a live broker has deleted
the records, as its fetches show, or with REQUEST_TIMED_OUT after the request's time-out: then they are
deleted on the leader, and on followers later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import LOGS, tell
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.partitions import LedPartition

INVALID_LOW_WATERMARK = -1


def failed(request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    """The answer to a request that failed as a whole."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index,
                        low_watermark=-1,
                        error_code=int(error.code),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@handles(
    DeleteRecordsRequest,
    versions="0-2",
    needs=[on_topics(AclOperation.DELETE).asked_by_handler()],
    error_response=failed,
)
def delete_records(request: DeleteRecordsRequest, ctx: RequestContext) -> Any:
    """Delete the records below each partition's offset, the last one if a partition is named twice.

    Answers at once if there is no live follower, else with a coroutine that waits for followers.
    """
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            offsets.setdefault(topic.name, {})[asked.partition_index] = asked.offset
    kept = denied_topics(ctx, AclOperation.DELETE, offsets)
    response = DeleteRecordsResponse(topics=[])
    waiting: list[_Waiting] = []
    told: list[str] = []
    for topic_name, places in offsets.items():
        results = DeleteRecordsTopicResult(name=topic_name, partitions=[])
        response.topics.append(results)
        for index, offset in places.items():
            result = DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=0
            )
            results.partitions.append(result)
            if topic_name in kept:
                result.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                continue
            try:
                partition = _led(topic_name, index, ctx)
                deleted = partition.deletion.delete(offset)
            except KafkaError as refused:
                result.error_code = int(refused.code)
                continue
            told.append(f"{topic_name}-{index} to {deleted.offset}")
            result.low_watermark = deleted.low_watermark
            reached = partition.deletion.everywhere(deleted.offset, request.timeout_ms)
            if reached is not None:
                waiting.append(_Waiting(result, partition, reached))
    tell(ctx, LOGS, "Incremented log start offset due to client delete records request: ", told)
    return _wait(response, waiting, ctx) if waiting else response


class _Waiting(NamedTuple):
    """A partition whose followers still have to delete."""

    result: DeleteRecordsPartitionResult
    partition: LedPartition
    reached: Awaitable[ErrorCode]


async def _wait(
    response: DeleteRecordsResponse, waiting: list[_Waiting], ctx: RequestContext
) -> DeleteRecordsResponse:
    delayed = ctx.node.purgatory.deletions
    delayed.begin(len(waiting))
    try:
        for result, partition, reached in waiting:
            error = await reached
            result.error_code = int(error)
            if error is ErrorCode.NONE:
                result.low_watermark = partition.deletion.low_watermark
            elif error is not ErrorCode.REQUEST_TIMED_OUT:
                result.low_watermark = INVALID_LOW_WATERMARK
    finally:
        delayed.end(len(waiting))
    return response


def _led(topic: str, index: int, ctx: RequestContext) -> LedPartition:
    """The partition.

    Raises:
        KafkaError: the partition is not led here; INVALID_TOPIC_EXCEPTION for an internal topic.
    """
    partition = ctx.node.partitions.led(topic, index)
    if partition is None:
        raise KafkaError(ctx.node.partitions.why_not_led(topic, index))
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return partition
