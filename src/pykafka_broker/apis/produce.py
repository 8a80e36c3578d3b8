"""Produce (API key 0): append record batches to partitions this node leads.

v3 is the first served; ApiVersions lists 0 because a librdkafka release needs to see it (KAFKA-18659). v7
zstd, v8 per-record errors, v9 flexible, v10 leader hints (KIP-951), v11 transaction errors (KIP-890), v12
implicit partition add, v13 topic ids.

Appending is the ordered part and happens before the handler returns. With acks=all the answer waits for the
high watermark (`Later`), and the next request of the connection may start; with acks=0 nothing is answered,
and an error closes the connection so that the producer refreshes its metadata.

A transaction's first batch in a partition waits for the transaction coordinator (KIP-890): up to v11 it has
to confirm that the partition was added, from v12 on it adds the partition. The connection waits meanwhile,
for the next batch may not come first. Once the transaction is open in the partition nobody is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE, Later, handles
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.apis.needs import on_topics, on_transactional_id
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.apis.verification import (
    NOTHING_TO_VERIFY,
    Refusal,
    Verification,
    finish_verification,
    start_verification,
)
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.coordinator.txn.state import TopicPartition
from pykafka_broker.log.partition.partition_log import NamesDue
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.validation import NotOneBatch, RecordErrors, check_framing, check_one_batch
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from pykafka_broker.protocol.records.batch import HEADER_BYTES, MAGIC, TRANSACTIONAL_BIT, read_header

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.partitions import LedPartition

logger = logging.getLogger("kafka.server.KafkaApis")

#: The first version that names topics by their ids.
FIRST_VERSION_OF_IDS = 13
#: acks values a producer may ask for: none, the leader, all in-sync replicas.
VALID_ACKS = (0, 1, -1)
#: Kafka's own tool writes internal topics under this client id.
ADMIN_CLIENT_ID = "__admin_client"
#: Where a batch's attributes have their low byte.
LOW_ATTRIBUTES_AT = 22

#: With these errors Kafka's log names its start, with others the answer says -1.
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

#: Who leads what is not led here.
LEADER_HINTS = LeaderHints(LeaderIdAndEpoch, NodeEndpoint)

Pending = list[tuple[PartitionProduceResponse, Awaitable[ErrorCode]]]


@handles(
    ProduceRequest,
    versions="3-13",
    needs=[on_transactional_id(AclOperation.WRITE), on_topics(AclOperation.WRITE)],
    quota=Quota.PRODUCE,
    advertised_min_version=0,
)
def produce(request: ProduceRequest, ctx: RequestContext) -> Any:
    """Append each partition's batch; one partition's failure does not touch the others."""
    topics = _each_partition_once(request.topic_data)
    try:
        if not _has_transactional_batch(request):
            return _appended(topics, request, ctx, NOTHING_TO_VERIFY)
        if request.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        started = start_verification(_transactional_batches(topics, ctx), ctx)
    except KafkaError as error:
        return _refused_whole(topics, request, error, ctx)
    if not started.guards:
        return _appended(topics, request, ctx, started)
    for topic in topics:
        for data in topic.partition_data:
            # The receive buffer is given to others while the coordinator is asked.
            data.records = data.records and bytearray(data.records)
    return _verified(topics, request, request.transactional_id, started, ctx)


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


def _transactional_batches(
    topics: list[TopicProduceData], ctx: RequestContext
) -> Iterator[tuple[TopicPartition, Any]]:
    """The batches that the coordinator may have to be asked about.

    What will be refused as no batch, or has no partition, must not be asked about: the question would stay
    open, and keep the producer from writing with a higher sequence number.
    """
    for topic in topics:
        name = _name_of(topic, ctx)
        for data in topic.partition_data:
            if (
                name is not None
                and data.records is not None
                and _is_transactional(data.records)
                and _exists(name, data.index, ctx)
                and _is_one_batch(data.records, ctx.version)
            ):
                yield TopicPartition(name, data.index), data.records


def _exists(name: str, index: int, ctx: RequestContext) -> bool:
    return (
        ctx.node.partitions.led(name, index) is not None
        or ctx.node.partitions.why_not_led(name, index) is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def _is_one_batch(records: Any, version: int) -> bool:
    try:
        check_one_batch(records, version)
    except KafkaError:
        return False
    return True


def _appended(
    topics: list[TopicProduceData], request: ProduceRequest, ctx: RequestContext, verification: Verification
) -> Any:
    pending: Pending = []
    answers: list[TopicProduceResponse] = []
    try:
        _go_on(topics, request, ctx, verification, answers, pending)
    except NamesDue as due:
        for topic in topics:
            for data in topic.partition_data:
                # The receive buffer is given to others meanwhile.
                data.records = data.records and bytearray(data.records)
        return _appended_later(topics, request, ctx, verification, answers, pending, due)
    return _answered(answers, request, ctx, pending)


def _go_on(
    topics: list[TopicProduceData],
    request: ProduceRequest,
    ctx: RequestContext,
    verification: Verification,
    answers: list[TopicProduceResponse],
    pending: Pending,
) -> None:
    """Append what has no answer yet.

    Raises:
        NamesDue: a partition needs a file before; what comes behind it has no answer either.
    """
    for number, topic in enumerate(topics):
        if number == len(answers):
            answers.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[])
            )
        answered = answers[number].partition_responses
        name = _name_of(topic, ctx)
        for data in topic.partition_data[len(answered) :]:
            answered.append(_answer(name, data, request, ctx, pending, verification))


async def _appended_later(
    topics: list[TopicProduceData],
    request: ProduceRequest,
    ctx: RequestContext,
    verification: Verification,
    answers: list[TopicProduceResponse],
    pending: Pending,
    due: NamesDue,
) -> Any:
    """Wait for the file that an append needs, and go on with it; so for each."""
    while True:
        try:
            await ctx.node.logs.make_names(due)
        except KafkaError as error:
            answered = answers[-1].partition_responses
            data = topics[len(answers) - 1].partition_data[len(answered)]
            answered.append(_refused(data.index, error, ctx))
        try:
            _go_on(topics, request, ctx, verification, answers, pending)
        except NamesDue as another:
            due = another
            continue
        answer = _answered(answers, request, ctx, pending)
        return await answer.awaitable if isinstance(answer, Later) else answer


def _answered(
    answers: list[TopicProduceResponse], request: ProduceRequest, ctx: RequestContext, pending: Pending
) -> Any:
    if request.acks == 0:
        return _close_on_error(answers, ctx)
    response = ProduceResponse(responses=answers)
    if ctx.version >= 10:
        elsewhere = [
            (_name_of(topic, ctx), answer.index, answer)
            for topic in answers
            for answer in topic.partition_responses
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        ]
        if elsewhere:
            response.node_endpoints = LEADER_HINTS.add(elsewhere, ctx)
    if pending:
        return Later(_committed(response, pending))
    return response


def _each_partition_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """What is to be written where; of a partition that is named twice Kafka sees the last mention only."""
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


def _name_of(topic: TopicProduceData | TopicProduceResponse, ctx: RequestContext) -> str | None:
    """The topic's name, None for an id that no topic has."""
    if ctx.version < FIRST_VERSION_OF_IDS:
        return topic.name
    known = ctx.node.metadata.image.topic_by_id(topic.topic_id)
    return None if known is None else known.name


def _answer(
    name: str | None,
    data: PartitionProduceData,
    request: ProduceRequest,
    ctx: RequestContext,
    pending: Pending,
    verification: Verification,
) -> PartitionProduceResponse:
    index = data.index
    if name is None:
        return _refused(index, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID), ctx)
    guard = NO_GUARD
    try:
        if verification is not NOTHING_TO_VERIFY:
            place = TopicPartition(name, index)
            if (refusal := verification.refusals.get(place)) is not None:
                raise refusal
            guard = verification.guards.get(place, NO_GUARD)
        return _append(name, index, data.records, request, ctx, pending, guard)
    except Refusal as error:
        return _refused(index, error, ctx, error.message if error.is_explained else None)
    except KafkaError as error:
        answer = _refused(index, error, ctx)
        if error.code in REFUSED_BY_LOG and not isinstance(error, NotOneBatch):
            partition = ctx.node.partitions.led(name, index)
            answer.log_start_offset = -1 if partition is None else partition.log.log_start_offset
        return answer


def _append(
    name: str,
    index: int,
    records: Any,
    request: ProduceRequest,
    ctx: RequestContext,
    pending: Pending,
    guard: int,
) -> PartitionProduceResponse:
    partition = ctx.node.partitions.led(name, index)
    if partition is None or request.acks not in VALID_ACKS or name in INTERNAL_TOPICS:
        refusal = _why_not_at_all(name, index, partition, request, ctx)
        if refusal is not None:
            if refusal.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and records is not None:
                check_one_batch(records, ctx.version)  # Kafka notices first what is no batch
            raise refusal
        assert partition is not None
    if records is None:
        # Apache Kafka never answers this one; an empty payload and a missing one are the same mistake.
        raise NotOneBatch("Produce requests must carry a record batch")
    result = partition.append(
        records,
        required_acks=request.acks,
        produce_version=ctx.version,
        now_ms=ctx.node.clock.now_ms(),
        guard=guard,
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


def _why_not_at_all(
    name: str, index: int, partition: LedPartition | None, request: ProduceRequest, ctx: RequestContext
) -> KafkaError | None:
    """Why nothing of this request can be written here, whatever it is."""
    unserved = ErrorCode.NONE if partition is not None else ctx.node.partitions.why_not_led(name, index)
    if unserved is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(unserved)
    if request.acks not in VALID_ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if name in INTERNAL_TOPICS and ctx.client_id != ADMIN_CLIENT_ID:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    return None if unserved is ErrorCode.NONE else KafkaError(unserved)


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
    """Whether a payload begins with a whole transactional batch; other formats have other things there."""
    return (
        len(records) >= HEADER_BYTES
        and records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL_BIT != 0
        and (header := read_header(records)).magic == MAGIC
        and header.size_in_bytes <= len(records)
    )


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


def _refused_whole(
    topics: list[TopicProduceData], request: ProduceRequest, error: KafkaError, ctx: RequestContext
) -> Any:
    message = None if error.message == error.code.message else error.message
    answers = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[_refused(data.index, error, ctx, message) for data in topic.partition_data],
        )
        for topic in topics
    ]
    if request.acks == 0:
        return _close_on_error(answers, ctx)
    return ProduceResponse(responses=answers)


async def _committed(response: ProduceResponse, pending: Pending) -> ProduceResponse:
    for answer, waiting in pending:
        error = await waiting
        if error is not ErrorCode.NONE:
            answer.error_code = int(error)
            answer.base_offset = -1
    return response


def _close_on_error(answers: list[TopicProduceResponse], ctx: RequestContext) -> Any:
    errors = {
        f"{_name_of(topic, ctx) or topic.topic_id.hex()}-{answer.index}": ErrorCode(answer.error_code).name
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
        errors,
    )
    return CLOSE
