"""One partition of a Produce request: the check that its batch may be written here, and its answer.

The refusals and their order are Apache Kafka's. The partition itself decides whether enough replicas are in
sync for acks=all (`replication/leading_replica.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.producing.told_refusals import tell_refusal
from pykafka_broker.apis.producing.verification import NOTHING_TO_VERIFY, Refusal, Verification
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.validation import NotOneBatch, RecordErrors, check_one_batch
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
)
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.partitions import LedPartition

logger = logging.getLogger("kafka.server.KafkaApis")

#: acks values a producer may ask for: none, the leader, all in-sync replicas.
VALID_ACKS = (0, 1, -1)
#: Kafka's own tool writes internal topics under this client id.
ADMIN_CLIENT_ID = "__admin_client"
#: With these errors the answer has the log start offset, with others -1, as in Kafka.
REFUSED_BY_LOG = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    }
)

#: Answers that wait until their batches may be acknowledged.
Pending = list[tuple[PartitionProduceResponse, Awaitable[ErrorCode]]]


def produce_to(
    name: str | None,
    data: PartitionProduceData,
    request: ProduceRequest,
    ctx: RequestContext,
    pending: Pending,
    verification: Verification,
) -> PartitionProduceResponse | Awaitable[PartitionProduceResponse]:
    """Append one partition's batch and return its answer, which is added to `pending` if the acknowledgement
    has to wait; an awaitable if the append itself has to wait.
    """
    index = data.index
    if name is None:
        return refused(index, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID), ctx)
    guard = NO_GUARD
    try:
        if verification is not NOTHING_TO_VERIFY:
            place = TopicPartition(name, index)
            if (refusal := verification.refusals.get(place)) is not None:
                raise refusal
            guard = verification.guards.get(place, NO_GUARD)
        return _append(name, index, data.records, request, ctx, pending, guard)
    except Refusal as error:
        tell_refusal(name, data.index, data.records, error, ctx)
        return refused(index, error, ctx, error.message if error.is_explained else None)
    except KafkaError as error:
        tell_refusal(name, index, data.records, error, ctx)
        return _not_appended(name, index, error, ctx)


def _not_appended(name: str, index: int, error: KafkaError, ctx: RequestContext) -> PartitionProduceResponse:
    answer = refused(index, error, ctx)
    if error.code in REFUSED_BY_LOG and not isinstance(error, NotOneBatch):
        partition = ctx.node.partitions.led(name, index)
        answer.log_start_offset = -1 if partition is None else partition.log.state.log_start_offset
    return answer


def _append(
    name: str,
    index: int,
    records: Any,
    request: ProduceRequest,
    ctx: RequestContext,
    pending: Pending,
    guard: int,
) -> PartitionProduceResponse | Awaitable[PartitionProduceResponse]:
    partition = ctx.node.partitions.led(name, index)
    if partition is None or request.acks not in VALID_ACKS or name in INTERNAL_TOPICS:
        refusal = _why_not_at_all(name, index, partition, request, ctx)
        if refusal is not None:
            if refusal.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and records is not None:
                check_one_batch(records, ctx.version)  # Kafka checks this first
            raise refusal
        assert partition is not None
    if records is None:
        # Apache Kafka never answers this request; here a missing payload is treated as an empty one.
        raise NotOneBatch("Produce requests must carry a record batch")
    result = partition.append(
        records,
        required_acks=request.acks,
        produce_version=ctx.version,
        now_ms=ctx.node.clock.now_ms(),
        guard=guard,
    )
    if isinstance(result, AppendResult):
        return _appended(index, result, partition, request, pending)
    return _appended_later(name, index, result, partition, request, ctx, pending)


async def _appended_later(
    name: str,
    index: int,
    result: Awaitable[AppendResult],
    partition: LedPartition,
    request: ProduceRequest,
    ctx: RequestContext,
    pending: Pending,
) -> PartitionProduceResponse:
    try:
        return _appended(index, await result, partition, request, pending)
    except KafkaError as error:
        return _not_appended(name, index, error, ctx)


def _appended(
    index: int, result: AppendResult, partition: LedPartition, request: ProduceRequest, pending: Pending
) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    if request.acks != 0 and not partition.committing.acknowledges_at_once:
        waiting = partition.committing.acknowledged(result.last_offset + 1, request.acks, request.timeout_ms)
        if waiting is not None:
            pending.append((answer, waiting))
    return answer


def _why_not_at_all(
    name: str, index: int, partition: LedPartition | None, request: ProduceRequest, ctx: RequestContext
) -> KafkaError | None:
    """The error if the partition refuses any batch of this request, else None."""
    unserved = ErrorCode.NONE if partition is not None else ctx.node.partitions.why_not_led(name, index)
    if unserved is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(unserved)
    if request.acks not in VALID_ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if name in INTERNAL_TOPICS and ctx.client_id != ADMIN_CLIENT_ID:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    return None if unserved is ErrorCode.NONE else KafkaError(unserved)


def unanswered(index: int) -> PartitionProduceResponse:
    """The placeholder of an answer that is not ready."""
    return PartitionProduceResponse(index=index, error_code=-1, base_offset=-1)


def refused(
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
        # As in Kafka, the error's own message is sent only if single records are at fault.
        answer.error_message = error.message if record_errors else message
    return answer
