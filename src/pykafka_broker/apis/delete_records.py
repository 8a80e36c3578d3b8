"""DeleteRecords (API key 21): move a partition's log start offset forward.

v1 as v0, v2 flexible. Offset -1 means the high watermark. Records below the new start are
never served again; whole segments below it are deleted later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

INVALID_LOW_WATERMARK = -1


@handles(
    DeleteRecordsRequest,
    versions="0-2",
    needs=[on_topics(AclOperation.DELETE)],
)
def delete_records(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    """Delete the records below each partition's offset; of a partition named twice the last offset counts."""
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            offsets.setdefault(topic.name, {})[asked.partition_index] = asked.offset
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic, partitions=[_result(topic, *place, ctx) for place in places.items()]
            )
            for topic, places in offsets.items()
        ]
    )


def _result(topic: str, index: int, offset: int, ctx: RequestContext) -> DeleteRecordsPartitionResult:
    try:
        low_watermark, error = _delete(topic, index, offset, ctx), ErrorCode.NONE
    except KafkaError as refused:
        low_watermark, error = INVALID_LOW_WATERMARK, refused.code
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=low_watermark, error_code=int(error)
    )


def _delete(topic: str, index: int, offset: int, ctx: RequestContext) -> int:
    """The partition's new low watermark.

    Raises:
        KafkaError: why nothing was deleted; POLICY_VIOLATION for a topic that is only compacted,
            INVALID_TOPIC_EXCEPTION for an internal one, OFFSET_OUT_OF_RANGE beyond the high watermark.
    """
    partition = ctx.node.partitions.led(topic, index)
    if partition is None:
        raise KafkaError(ctx.node.partitions.why_not_led(topic, index))
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return partition.delete_records(offset)
