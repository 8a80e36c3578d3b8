"""DescribeProducers (API key 61): the producers of a partition, their last sequences and open transactions.

v0 only (KIP-664), flexible from the start. Any replica answers, so that an operator can compare them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.topic_names import why_invalid_name
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    """The answer to a request that failed as a whole."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_refused(index, error.code) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


@handles(
    DescribeProducersRequest,
    versions="0",
    needs=[on_topics(AclOperation.READ).asked_by_handler()],
    error_response=failed,
)
def describe_producers(request: DescribeProducersRequest, ctx: RequestContext) -> DescribeProducersResponse:
    """List the active producers of each partition this node leads or follows."""
    hidden = denied_topics(
        ctx,
        AclOperation.READ,
        (topic.name for topic in request.topics if not why_invalid_name(topic.name)),
    )
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _refused(index, denied, denied.message)
                    if topic.name in hidden
                    else _described(topic.name, index, ctx)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _refused(index: int, error: ErrorCode, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=int(error), error_message=message, active_producers=[]
    )


def _described(topic: str, index: int, ctx: RequestContext) -> PartitionResponse:
    here = ctx.node.partitions
    partition = here.led(topic, index) or here.followed(topic, index)
    if partition is None:
        error = _why_not(topic, index, ctx)
        is_known = topic in ctx.node.metadata.image.topics
        return _refused(index, error.code, None if is_known else error.message)
    return PartitionResponse(
        partition_index=index,
        error_code=0,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in partition.log.state.active_producers()
        ],
    )


def _why_not(topic: str, index: int, ctx: RequestContext) -> KafkaError:
    if why := why_invalid_name(topic):
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")
    return KafkaError(ctx.node.partitions.why_not_led(topic, index))
