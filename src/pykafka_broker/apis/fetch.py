"""Fetch (API key 1): read record batches, waiting for `min_bytes` if there are too few.

v4 is the first served (isolation level); v5 log start offset, v7 sessions (KIP-227), v9 leader epochs, v12
flexible and diverging epochs (KIP-595), v13 topic ids (KIP-516), v15 replica state, v16 leader endpoints
(KIP-951), v17 directory ids, v18 a replica's high watermark.

The answer comes at once if nothing may be waited for, no partition is left, enough bytes are there, a known
partition cannot be read, or a consumer's log has diverged; else the fetch is parked until one of its
partitions moves. Partitions are planned (an index look-up, no data) until the answer is due, and only then
read: from the page cache on the event loop, from the disk in a worker thread. The first non-empty partition
gives at least one whole batch even above both limits (KIP-74).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import LedPartition, RequestContext
    from pykafka_broker.apis.fetch_sessions import FetchContext, WantedPartition
    from pykafka_broker.log.partition import PartitionLog
    from pykafka_broker.log.reading import ReadPlan

READ_UNCOMMITTED, READ_COMMITTED = 0, 1

Answers = list[tuple["WantedPartition", PartitionData]]


class _Planned:
    """What would be answered now: the partitions' answers, and the reads that fill in their records."""

    __slots__ = ("answers", "at_once", "available_bytes", "limit", "logs", "reads", "wanted_at")

    def __init__(self) -> None:
        self.answers: Answers = []
        self.reads: list[tuple[PartitionData, ReadPlan]] = []
        self.logs: list[PartitionLog] = []
        #: For each log, from where and how much is wanted.
        self.wanted_at: list[tuple[int, int]] = []
        self.limit: Any = "high_watermark"
        self.available_bytes = 0
        self.at_once = False


@handles(FetchRequest, versions="4-18")
def fetch(request: FetchRequest, ctx: RequestContext) -> Any:
    """Answer at once when possible, else as a coroutine that parks."""
    image = ctx.node.image

    def name_of(topic_id: bytes) -> str | None:
        topic = image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    context = ctx.node.fetch_sessions.begin(request, ctx.version, ctx.node.now_ms(), name_of)
    if context.error is not ErrorCode.NONE:
        return _response(context, [], ctx)
    max_bytes = min(request.max_bytes, ctx.node.fetch_max_bytes, ctx.connection.answer_budget_bytes)
    planned = _plan(request, context, max_bytes, ctx)
    enough_bytes = min(request.min_bytes, max_bytes)
    if request.max_wait_ms > 0 and not planned.at_once and planned.available_bytes < enough_bytes:
        return _parked(request, context, max_bytes, planned, ctx)
    for data, plan in planned.reads:
        records = plan.read_cached()
        if records is None:
            return _cold(context, planned, ctx)
        data.records = records
    return _response(context, planned.answers, ctx)


async def _parked(
    request: FetchRequest, context: FetchContext, max_bytes: int, planned: _Planned, ctx: RequestContext
) -> FetchResponse:
    node = ctx.node
    until_ms = node.now_ms() + request.max_wait_ms
    enough_bytes = min(request.min_bytes, max_bytes)
    if _may_answer(planned, enough_bytes):
        # Other connections ran between the plan and this coroutine's first step: they woke nobody here.
        planned = _plan(request, context, max_bytes, ctx)
    while planned.available_bytes < enough_bytes and not planned.at_once:
        parked_on = len(planned.logs)
        # Any move gives a reader of one byte what it wants; others are not to be woken for every batch.
        ready = None if enough_bytes <= 1 else partial(_may_answer, planned, enough_bytes)
        moved = await node.wait_for(planned.logs, until_ms, ctx, ready)
        planned = _plan(request, context, max_bytes, ctx)
        if not moved or len(planned.logs) < parked_on:
            # Time is up, or a topic was deleted meanwhile, which its reader must learn at once.
            break
    return await _cold(context, planned, ctx)


def _may_answer(planned: _Planned, enough_bytes: int) -> bool:
    """True if planning again may find enough bytes, or an error; asked at every move, so it is cheap."""
    available_bytes = 0
    for log, (offset, max_bytes) in zip(planned.logs, planned.wanted_at, strict=True):
        if log.closed or log.offline or offset < log.log_start_offset:
            return True
        available_bytes += min(log.available_bytes(offset, planned.limit), max_bytes)
    return available_bytes >= enough_bytes


async def _cold(context: FetchContext, planned: _Planned, ctx: RequestContext) -> FetchResponse:
    for data, plan in planned.reads:
        records = plan.read_cached()
        if records is None:
            try:
                records = await ctx.node.run_blocking(plan.read)
            except KafkaError as error:
                data.error_code = int(error.code)
                records = b""
        data.records = records
    return _response(context, planned.answers, ctx)


def _plan(request: FetchRequest, context: FetchContext, max_bytes: int, ctx: RequestContext) -> _Planned:
    planned = _Planned()
    isolation = request.isolation_level
    if isolation not in (READ_UNCOMMITTED, READ_COMMITTED):
        planned.answers = [
            (wanted, _failed(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)) for wanted in context.wanted.values()
        ]
        planned.at_once = True
        return planned
    limit = "last_stable" if isolation == READ_COMMITTED else "high_watermark"
    planned.limit = limit
    left = max_bytes
    first = True
    served = 0
    for wanted in context.wanted.values():
        if wanted.topic is None:
            planned.answers.append((wanted, _failed(wanted, ErrorCode.UNKNOWN_TOPIC_ID, unknown=True)))
            continue
        partition = ctx.node.partition(wanted.topic, wanted.partition)
        if partition is None:
            # Not led here, or not known.
            error = ctx.node.partition_error(wanted.topic, wanted.partition)
            unknown = error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            planned.answers.append((wanted, _failed(wanted, error, unknown=unknown)))
            # An unknown partition does not end the wait of the good ones beside it; any other error does.
            planned.at_once = planned.at_once or not unknown
            served += 0 if unknown else 1
            continue
        served += 1
        try:
            data, plan = _read_partition(wanted, partition, limit, left, first)
        except KafkaError as error:
            planned.answers.append((wanted, _failed(wanted, error.code)))
            planned.at_once = True
            continue
        planned.answers.append((wanted, data))
        planned.logs.append(partition.log)
        planned.wanted_at.append((wanted.fetch_offset, wanted.max_bytes))
        if plan is None:
            planned.at_once = True
            continue
        size = plan.size_bytes
        if size > 0:
            planned.reads.append((data, plan))
            planned.available_bytes += size
            left = max(0, left - size)
            first = False
    planned.at_once = planned.at_once or served == 0
    return planned


def _read_partition(
    wanted: WantedPartition, partition: LedPartition, limit: Any, left: int, first: bool
) -> tuple[PartitionData, ReadPlan | None]:
    """The answer without its records, and how to read them; no plan if the reader's log has diverged.

    Raises:
        KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE or a storage error.
    """
    check_leader_epoch(partition, wanted.current_leader_epoch)
    log = partition.log
    data = PartitionData(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=[] if limit == "last_stable" else None,
        records=b"",
    )
    if wanted.last_fetched_epoch >= 0:
        epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or wanted.fetch_offset < log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
            return data, None
    plan = log.plan_read(
        wanted.fetch_offset, min(wanted.max_bytes, left), limit=limit, minimum_one_batch=first
    )
    if limit == "last_stable" and plan.size_bytes:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
            for txn in plan.aborted_transactions()
        ]
    return data, plan


def check_leader_epoch(partition: LedPartition, current_leader_epoch: int) -> None:
    """Fence a client whose idea of the leader is not this one (-1: it has none).

    Raises:
        KafkaError: FENCED_LEADER_EPOCH if the client's epoch is older, UNKNOWN_LEADER_EPOCH if it is newer.
    """
    if current_leader_epoch < 0:
        return
    if current_leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if current_leader_epoch > partition.leader_epoch:
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)


def _failed(wanted: WantedPartition, error: ErrorCode, *, unknown: bool = False) -> PartitionData:
    """An error answer; for a partition it does not know, Kafka gives an empty aborted list, else none."""
    return PartitionData(
        partition_index=wanted.partition,
        error_code=int(error),
        high_watermark=-1,
        aborted_transactions=[] if unknown else None,
        records=b"",
    )


def _response(context: FetchContext, answers: Answers, ctx: RequestContext) -> FetchResponse:
    error, session_id, listed = context.finish(answers)
    topics: list[FetchableTopicResponse] = []
    last: object = None
    for wanted, data in listed:
        identity = (wanted.topic, wanted.topic_id)
        if not topics or identity != last:
            topics.append(
                FetchableTopicResponse(topic=wanted.topic or "", topic_id=wanted.topic_id, partitions=[])
            )
            last = identity
        topics[-1].partitions.append(data)
    response = FetchResponse(
        throttle_time_ms=0, error_code=int(error), session_id=session_id, responses=topics
    )
    if ctx.version >= 12:
        _leader_hints(response, listed, ctx)
    return response


def _leader_hints(response: FetchResponse, listed: Answers, ctx: RequestContext) -> None:
    """KIP-951: say who leads a partition that is not (or no longer) led here."""
    endpoints: dict[int, NodeEndpoint] = {}
    for wanted, data in listed:
        if data.error_code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            continue
        topic = ctx.node.image.topics.get(wanted.topic) if wanted.topic else None
        registration = topic.partitions.get(wanted.partition) if topic else None
        if registration is None:
            continue
        data.current_leader = LeaderIdAndEpoch(
            leader_id=registration.leader, leader_epoch=registration.leader_epoch
        )
        address = ctx.node.advertised(registration.leader, ctx)
        if address is not None:
            endpoints[registration.leader] = NodeEndpoint(
                node_id=registration.leader, host=address[0], port=address[1]
            )
    if ctx.version >= 16:
        response.node_endpoints = list(endpoints.values())
