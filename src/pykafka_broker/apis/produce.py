"""Produce (API key 0): append record batches to partitions this node leads.

v3 is the first served; ApiVersions lists 0 because a librdkafka release needs to see it (KAFKA-18659). v7
zstd, v8 per-record errors, v9 flexible, v10 leader hints (KIP-951), v11 transaction errors (KIP-890), v12
implicit partition add, v13 topic ids.

Appending is the ordered part and happens before the handler returns. With acks=all the answer waits for the
high watermark (`Later`), and the next request of the connection may start; with acks=0 nothing is answered,
and an error closes the connection so that the producer refreshes its metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE, Later, handles
from pykafka_broker.apis.topology import INTERNAL_TOPICS
from pykafka_broker.log.validation import NotOneBatch, RecordErrors, check_framing
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from pykafka_broker.protocol.records.batch import HEADER_BYTES

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")

#: acks values a producer may ask for: none, the leader, all in-sync replicas.
VALID_ACKS = (0, 1, -1)
#: Kafka's own tool writes internal topics under this client id.
ADMIN_CLIENT_ID = "__admin_client"
#: Where a batch's attributes have their low byte, and the bit that says "part of a transaction".
LOW_ATTRIBUTES_AT = 22
TRANSACTIONAL_BIT = 0x10

#: With these errors Kafka's log names its start, with others the answer says -1.
REFUSED_BY_LOG = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)

Pending = list[tuple[PartitionProduceResponse, Awaitable[ErrorCode]]]


@handles(ProduceRequest, versions="3-13", advertised_min_version=0)
def produce(request: ProduceRequest, ctx: RequestContext) -> Any:
    """Append each partition's batch; one partition's failure does not touch the others."""
    pending: Pending = []
    try:
        if _has_transactional_batch(request) and request.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    except KafkaError as error:
        return _refused_whole(request, error, ctx)
    topics = [_topic(topic, request, ctx, pending) for topic in request.topic_data]
    response = ProduceResponse(responses=topics)
    if ctx.version >= 10:
        response.node_endpoints = _leader_hints(topics, request, ctx)
    if request.acks == 0:
        return _close_on_error(topics, ctx)
    if pending:
        return Later(_committed(response, pending))
    return response


def _topic(
    topic: TopicProduceData, request: ProduceRequest, ctx: RequestContext, pending: Pending
) -> TopicProduceResponse:
    name = topic.name
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if ctx.version >= 13:
        described = ctx.node.image.topic_by_id(topic.topic_id)
        name = described.name if described is not None else ""
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if described is None else unknown
    answers = []
    for data in topic.partition_data:
        try:
            answer = _append(name, data.index, data.records, request, ctx, unknown, pending)
        except KafkaError as error:
            answer = _refused(data.index, error, ctx)
            if error.code in REFUSED_BY_LOG and not isinstance(error, NotOneBatch):
                partition = ctx.node.partition(name, data.index)
                answer.log_start_offset = -1 if partition is None else partition.log.log_start_offset
        answers.append(answer)
    return TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=answers)


def _append(
    name: str,
    index: int,
    records: Any,
    request: ProduceRequest,
    ctx: RequestContext,
    unknown: ErrorCode,
    pending: Pending,
) -> PartitionProduceResponse:
    partition = ctx.node.partition(name, index)
    if partition is None:
        error = ctx.node.partition_error(name, index)
        raise KafkaError(unknown if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error)
    if request.acks not in VALID_ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if name in INTERNAL_TOPICS and ctx.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    if records is None:
        # Apache Kafka never answers this one; an empty payload and a missing one are the same mistake.
        raise NotOneBatch("Produce requests must carry a record batch")
    if _is_transactional(records):
        # No transaction coordinator serves this node yet, so no transaction can be ongoing.
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    result = partition.append(
        records, required_acks=request.acks, produce_version=ctx.version, now_ms=ctx.node.now_ms()
    )
    answer = PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    if request.acks != 0:
        waiting = partition.acknowledged(result.last_offset + 1)
        if waiting is not None:
            pending.append((answer, waiting))
    return answer


def _refused(
    index: int, error: KafkaError, ctx: RequestContext, message: str | None = None
) -> PartitionProduceResponse:
    """The answer for a batch that was not appended; KIP-467 fields name the records at fault."""
    logger.debug("Produce to partition %d from client %s refused: %r", index, ctx.client_id, error)
    answer = PartitionProduceResponse(index=index, error_code=int(error.code), base_offset=-1)
    if ctx.version >= 8:
        record_errors = error.errors if isinstance(error, RecordErrors) else ()
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=text)
            for record, text in record_errors
        ]
        # As in Kafka, the code speaks for itself unless single records are at fault.
        answer.error_message = error.message if record_errors else message
    return answer


def _is_transactional(records: Any) -> bool:
    return len(records) >= HEADER_BYTES and bool(records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL_BIT)


def _has_transactional_batch(request: ProduceRequest) -> bool:
    """Look at the first batch of every partition, as Kafka does before it serves any of them.

    Raises:
        KafkaError: CORRUPT_MESSAGE for one that cannot be told from noise, which spoils the whole request.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                check_framing(data.records)
                if _is_transactional(data.records):
                    return True
    return False


def _refused_whole(request: ProduceRequest, error: KafkaError, ctx: RequestContext) -> Any:
    message = None if error.message == error.code.message else error.message
    topics = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[_refused(data.index, error, ctx, message) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return _close_on_error(topics, ctx) if request.acks == 0 else ProduceResponse(responses=topics)


async def _committed(response: ProduceResponse, pending: Pending) -> ProduceResponse:
    for answer, waiting in pending:
        error = await waiting
        if error is not ErrorCode.NONE:
            answer.error_code = int(error)
            answer.base_offset = -1
    return response


def _leader_hints(
    topics: list[TopicProduceResponse], request: ProduceRequest, ctx: RequestContext
) -> list[NodeEndpoint]:
    """KIP-951: beside NOT_LEADER_OR_FOLLOWER, say who leads and where: no metadata round is needed."""
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in topics:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            described = ctx.node.image.topics.get(topic.name)
            registration = described.partitions.get(answer.index) if described else None
            if registration is None:
                continue
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=registration.leader, leader_epoch=registration.leader_epoch
            )
            address = ctx.node.advertised(registration.leader, ctx)
            if address is not None:
                endpoints[registration.leader] = NodeEndpoint(
                    node_id=registration.leader, host=address[0], port=address[1]
                )
    return list(endpoints.values())


def _close_on_error(topics: list[TopicProduceResponse], ctx: RequestContext) -> Any:
    errors = {
        f"{topic.name}-{answer.index}": ErrorCode(answer.error_code).name
        for topic in topics
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
        errors,
    )
    return CLOSE
