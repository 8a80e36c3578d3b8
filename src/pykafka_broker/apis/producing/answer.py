"""The answer to a Produce request: errors, leader hints, and with acks=0 no response at all."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE, Later
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.apis.producing.partition import Pending, refused
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from pykafka_broker.system.wording import cut

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")

#: The first version that names topics by their ids.
FIRST_VERSION_OF_IDS = 13
LEADER_HINTS_VERSION = 10
#: Adds the leaders of partitions that are led elsewhere.
LEADER_HINTS = LeaderHints(LeaderIdAndEpoch, NodeEndpoint)


def name_of(topic: TopicProduceData | TopicProduceResponse, ctx: RequestContext) -> str | None:
    """The topic's name, None for an unknown id."""
    if ctx.version < FIRST_VERSION_OF_IDS:
        return topic.name
    known = ctx.node.metadata.image.topic_by_id(topic.topic_id)
    return None if known is None else known.name


def answer_to(
    answers: list[TopicProduceResponse], request: ProduceRequest, ctx: RequestContext, pending: Pending
) -> Any:
    """The response, `Later` if it has to wait for `pending`; NO_RESPONSE or CLOSE with acks=0."""
    if request.acks == 0:
        return _close_on_error(answers, ctx)
    response = ProduceResponse(responses=answers)
    if pending:
        return Later(_committed(response, pending, ctx))
    _name_leaders(response, ctx)
    return response


def _name_leaders(response: ProduceResponse, ctx: RequestContext) -> None:
    """Add the leaders of the partitions that are led elsewhere."""
    elsewhere = [
        (name_of(topic, ctx), answer.index, answer)
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]
    if elsewhere:
        if ctx.version >= LEADER_HINTS_VERSION:
            response.node_endpoints = LEADER_HINTS.add(elsewhere, ctx)
        _close_if_cut_off(((name, index) for name, index, _ in elsewhere), ctx)


def _close_if_cut_off(refused: Iterable[tuple[str | None, int]], ctx: RequestContext) -> None:
    """Close the connection if this node is cut off, so that the client asks another node for the leader.

    librdkafka keeps asking the broker that it used last while its connection is open, and a node that is cut
    off does not know the leader.
    """
    for name, index in refused:
        led = ctx.node.partitions.led(name, index) if name else None
        if led is not None and led.is_cut_off:
            logger.debug(
                "Closing connection of client id %s after the answer to its produce request: the controller "
                "and at least one in-sync replica of %s-%d are silent.",
                ctx.client_id,
                name,
                index,
            )
            ctx.connection.close_when_answered()
            return


def refused_whole(
    topics: list[TopicProduceData], request: ProduceRequest, error: KafkaError, ctx: RequestContext
) -> Any:
    """The answer to a refused request: every partition has the same error."""
    answers = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                refused(data.index, error, ctx, error.explanation) for data in topic.partition_data
            ],
        )
        for topic in topics
    ]
    if request.acks == 0:
        return _close_on_error(answers, ctx)
    return ProduceResponse(responses=answers)


def failed(request: ProduceRequest, error: KafkaError) -> Any:
    """The answer after an unexpected error; some of the batches may be in their logs. CLOSE with acks=0."""
    if request.acks == 0:
        return CLOSE
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=int(error.code), base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


async def _committed(response: ProduceResponse, pending: Pending, ctx: RequestContext) -> ProduceResponse:
    """The response once every batch in it may be acknowledged, or has failed."""
    delayed = ctx.node.purgatory.produces
    delayed.begin(len(pending))
    try:
        for answer, waiting in pending:
            error = await waiting
            if error is not ErrorCode.NONE:
                # The batch stays in the log, and the answer keeps its offset.
                answer.error_code = int(error)
                delayed.expired += error is ErrorCode.REQUEST_TIMED_OUT
    finally:
        delayed.end(len(pending))
    _name_leaders(response, ctx)
    return response


def _close_on_error(answers: list[TopicProduceResponse], ctx: RequestContext) -> Any:
    errors = {
        f"{name_of(topic, ctx) or topic.topic_id.hex()}-{answer.index}": ErrorCode(answer.error_code).name
        for topic in answers
        for answer in topic.partition_responses
        if answer.error_code
    }
    if not errors:
        return NO_RESPONSE
    logger.info(
        "Closing connection due to error during produce request with correlation id %d from client id %s "
        "with ack=0: %s",
        ctx.correlation_id,
        ctx.client_id,
        cut(str(errors)),
    )
    return CLOSE
