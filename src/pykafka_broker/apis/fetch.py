"""Fetch (API key 1): read record batches, waiting for `min_bytes` if there are too few.

v4 is the first served (isolation level); v5 log start offset, v7 sessions (KIP-227), v9 leader epochs, v12
flexible and diverging epochs (KIP-595), v13 topic ids (KIP-516), v15 replica state, v16 leader endpoints
(KIP-951), v17 directory ids, v18 a replica's high watermark.

The answer comes at once if nothing may be waited for, no partition is left, enough bytes are there, a known
partition cannot be read, or a consumer's log has diverged; else the fetch is parked until one of its
partitions moves. Partitions are planned (an index look-up, no data) until the answer is due. Then what the
page cache has is answered at once, and what it has not is read by a thread first; larger reads stay in their
file until they are sent, a piece at a time. A partition whose disk does not answer in time is answered
without records, and counts as empty until it has. The first non-empty partition gives at least one whole
batch even above both limits (KIP-74).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.apis.needs import on_cluster, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.log.segment.stored_records import LEAST_BYTES
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
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.fetch_sessions import FetchContext, WantedPartition
    from pykafka_broker.apis.ports.node import NodePorts
    from pykafka_broker.apis.ports.partitions import LedPartition
    from pykafka_broker.apis.ports.threads import Reading
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.read_plan import ReadPlan
    from pykafka_broker.log.segment.stored_records import ReadCold

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_LEADER_EPOCH = -1
#: From this version on a request refused as a whole lists no partitions.
TOPIC_ID_VERSION = 13
#: How long disks may take when other partitions have enough to answer.
DISK_PATIENCE_MS = 100
#: How long they may take when there is not; then the fetch waits like one that finds nothing.
LONG_DISK_PATIENCE_MS = 1_000
LEADER_HINTS_VERSION = 16
#: Errors beside which the answer says who leads.
LED_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
LEADER_HINTS = LeaderHints(LeaderIdAndEpoch, NodeEndpoint)

Answers = list[tuple["WantedPartition", PartitionData]]
_ColdRead = tuple[PartitionData, "PartitionLog", "Reading[Any]"]


class _Planned:
    """What would be answered now: the partitions' answers, and the reads that fill in their records."""

    __slots__ = (
        "answers",
        "at_once",
        "available_bytes",
        "late",
        "limit",
        "logs",
        "reads",
        "unknown",
        "wanted_at",
    )

    def __init__(self) -> None:
        self.answers: Answers = []
        self.reads: list[tuple[PartitionData, ReadPlan, PartitionLog]] = []
        self.logs: list[PartitionLog] = []
        #: Logs whose disk has not answered an earlier fetch yet: there is nothing to read until it has.
        self.late: list[PartitionLog] = []
        #: For each log, from where and how much is wanted.
        self.wanted_at: list[tuple[int, int]] = []
        self.limit: Any = "high_watermark"
        self.available_bytes = 0
        self.at_once = False
        #: Partitions that nobody knows, and nobody knew before the wait.
        self.unknown: set[WantedPartition] = set()


@handles(
    FetchRequest,
    versions="4-18",
    needs=[
        on_cluster(AclOperation.CLUSTER_ACTION, lambda request: _replica_id(request) >= 0),
        on_topics(AclOperation.READ),
    ],
    quota=Quota.FETCH,
)
def fetch(request: FetchRequest, ctx: RequestContext) -> Any:
    """Answer at once when possible, else as a coroutine that parks."""
    image = ctx.node.metadata.image

    def name_of(topic_id: bytes) -> str | None:
        topic = image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refused_whole(request, ErrorCode.UNKNOWN_SERVER_ERROR, ctx)
    context = ctx.node.fetching.sessions.begin(request, ctx.version, ctx.node.clock.now_ms(), name_of)
    if context.error is not ErrorCode.NONE:
        return _response(request, context, [], ctx)
    max_bytes = min(request.max_bytes, ctx.node.fetching.max_bytes, ctx.connection.answer_budget_bytes)
    planned = _plan(request, context, max_bytes, ctx)
    enough_bytes = min(request.min_bytes, max_bytes)
    if request.max_wait_ms > 0 and not planned.at_once and planned.available_bytes < enough_bytes:
        return _parked(
            request, context, max_bytes, planned, ctx.node.clock.now_ms() + request.max_wait_ms, ctx
        )
    for data, plan, log in planned.reads:
        records = plan.answer_cached(partial(ctx.node.cold_reads.run, log))
        if records is None:
            until_ms = ctx.node.clock.now_ms() + request.max_wait_ms
            return _cold(request, context, planned, until_ms, max_bytes, ctx)
        data.records = records
    return _response(request, context, planned.answers, ctx)


async def _parked(
    request: FetchRequest,
    context: FetchContext,
    max_bytes: int,
    planned: _Planned,
    until_ms: int,
    ctx: RequestContext,
) -> FetchResponse:
    node = ctx.node
    enough_bytes = min(request.min_bytes, max_bytes)
    if _may_answer(planned, enough_bytes):
        # Other connections ran between the plan and this coroutine's first step: they woke nobody here.
        planned = _plan(request, context, max_bytes, ctx, planned)
    while planned.available_bytes < enough_bytes and not planned.at_once:
        watched = [*planned.logs, *planned.late]
        # Any move gives a reader of one byte what it wants; others are not to be woken for every batch.
        ready = None if enough_bytes <= 1 else _Enough(planned, enough_bytes)
        moved = await node.purgatory.wait(watched, until_ms, ctx.connection, ready)
        # Others may have been answered meanwhile, and may not have read their answers.
        max_bytes = min(max_bytes, ctx.connection.answer_budget_bytes)
        enough_bytes = min(enough_bytes, max_bytes)
        planned = _plan(request, context, max_bytes, ctx, planned)
        if not moved or len(planned.logs) + len(planned.late) < len(watched):
            # Time is up, or a topic was deleted meanwhile, which its reader must learn at once.
            break
    return await _cold(request, context, planned, until_ms, max_bytes, ctx)


def _may_answer(planned: _Planned, enough_bytes: int) -> bool:
    """True if planning again may find enough bytes, or an error."""
    for log, (offset, _) in zip(planned.logs, planned.wanted_at, strict=True):
        if _has_error(log, offset):
            return True
    return _readable_bytes(planned) >= enough_bytes


def _has_error(log: PartitionLog, offset: int) -> bool:
    return log.closed or log.offline is not None or offset < log.log_start_offset


class _Enough:
    """Whether there may be enough for a parked fetch. Asked at every move, it looks at that log only: a
    reader of a thousand partitions costs the writers of each no more than a reader of one.
    """

    __slots__ = ("_limit", "_missing_bytes", "_readable", "_wanted_at")

    def __init__(self, planned: _Planned, enough_bytes: int) -> None:
        self._limit = planned.limit
        self._wanted_at = dict(zip(planned.logs, planned.wanted_at, strict=True))
        self._readable = {log: self._readable_in(log) for log in planned.logs}
        self._missing_bytes = enough_bytes - sum(self._readable.values())

    def __call__(self, log: PartitionLog) -> bool:
        if log not in self._wanted_at or _has_error(log, self._wanted_at[log][0]):
            return True  # a late one has arrived, or there is something to tell
        readable = self._readable_in(log)
        self._missing_bytes -= readable - self._readable[log]
        self._readable[log] = readable
        return self._missing_bytes <= 0

    def _readable_in(self, log: PartitionLog) -> int:
        offset, max_bytes = self._wanted_at[log]
        return min(log.available_bytes(offset, self._limit), max_bytes)


def _readable_bytes(planned: _Planned) -> int:
    """About how much there is to read now, each partition counting up to its own limit."""
    limit = planned.limit
    readable = 0
    for log, (offset, max_bytes) in zip(planned.logs, planned.wanted_at, strict=True):
        readable += min(log.available_bytes(offset, limit), max_bytes)
    return readable


async def _cold(
    request: FetchRequest,
    context: FetchContext,
    planned: _Planned,
    until_ms: int,
    max_bytes: int,
    ctx: RequestContext,
) -> FetchResponse:
    # All at once: each disk works for itself.
    cold: list[_ColdRead] = []
    for data, plan, log in planned.reads:
        read_cold: ReadCold = partial(ctx.node.cold_reads.run, log)
        records = plan.answer_cached(read_cold)
        if records is None:
            cold.append((data, log, ctx.node.cold_reads.run(log, partial(plan.answer, read_cold))))
        else:
            data.records = records
    # Larger ones stay in their files.
    in_memory_bytes = sum(min(plan.size_bytes, LEAST_BYTES) for _, plan, _ in planned.reads) if cold else 0
    ctx.connection.reads_ahead(in_memory_bytes)
    try:
        has_enough = await _wait_for_disks(cold, planned, min(request.min_bytes, max_bytes), ctx.node)
    finally:
        ctx.connection.reads_ahead(-in_memory_bytes)
    if not has_enough and ctx.node.clock.now_ms() < until_ms:
        planned = _plan(request, context, max_bytes, ctx, planned)
        return await _parked(request, context, max_bytes, planned, until_ms, ctx)
    return _response(request, context, planned.answers, ctx)


async def _wait_for_disks(
    cold: list[_ColdRead], planned: _Planned, enough_bytes: int, node: NodePorts
) -> bool:
    """Take what the disks give, all of it if it comes in time; whether that is enough to answer."""
    begun_ms = node.clock.now_ms()
    while True:
        pending = []
        for data, log, reading in cold:
            if not reading.done():
                pending.append((data, log, reading))
                continue
            try:
                data.records = reading.result()
            except KafkaError as error:
                data.error_code = int(error.code)
                planned.at_once = True
        cold = pending
        if not cold:
            return True
        read_bytes = sum([len(data.records) for data, _, _ in planned.reads])
        has_enough = planned.at_once or read_bytes >= max(1, enough_bytes)
        due_ms = begun_ms + (DISK_PATIENCE_MS if has_enough else LONG_DISK_PATIENCE_MS)
        if node.clock.now_ms() >= due_ms:
            break
        await node.cold_reads.first_done(tuple(reading for _, _, reading in cold), due_ms)
    for data, log, reading in cold:
        node.cold_reads.give_up(log, reading)
        if data.aborted_transactions is not None:
            data.aborted_transactions = []
    return has_enough


def _plan(
    request: FetchRequest,
    context: FetchContext,
    max_bytes: int,
    ctx: RequestContext,
    before: _Planned | None = None,
) -> _Planned:
    """What would be answered now; `before` is the plan with which the fetch has waited."""
    planned = _Planned()
    limit = planned.limit = "last_stable" if request.isolation_level == READ_COMMITTED else "high_watermark"
    is_replica = _replica_id(request) >= 0
    left = max_bytes
    unknown_ids: Answers = []
    unknown: Answers = []
    for wanted in context.wanted.values():
        if wanted.topic is None:
            unknown_ids.append((wanted, _unknown(wanted, ErrorCode.UNKNOWN_TOPIC_ID)))
            continue
        partition = ctx.node.partitions.led(wanted.topic, wanted.partition)
        try:
            if partition is None:
                error = ctx.node.partitions.why_not_led(wanted.topic, wanted.partition)
                gone = before is not None and wanted not in before.unknown
                if error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or gone:
                    raise KafkaError(error)
                planned.unknown.add(wanted)
                unknown.append((wanted, _unknown(wanted, error)))
                continue
            if is_replica:
                # Partitions have one replica here: nobody else can be one of their followers.
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            data, plan = _read_partition(wanted, partition, limit, left, first=not planned.reads)
        except KafkaError as error:
            planned.answers.append((wanted, _failed(wanted, error.code)))
            planned.at_once = True
            continue
        planned.answers.append((wanted, data))
        log = partition.log
        if (
            plan is not None
            and plan.size_bytes
            and ctx.node.cold_reads.is_late(log)
            and plan.answer_cached(partial(ctx.node.cold_reads.run, log)) is None
        ):
            planned.late.append(log)
            continue
        planned.logs.append(log)
        planned.wanted_at.append((wanted.fetch_offset, wanted.max_bytes))
        if plan is None:
            planned.at_once = True
        elif plan.size_bytes:
            planned.reads.append((data, plan, log))
            planned.available_bytes += plan.size_bytes
            left = max(0, left - plan.size_bytes)
    # Beside others, a partition nobody knows does not end the wait; if there are no others, there is none.
    planned.at_once = planned.at_once or not planned.answers
    planned.answers += unknown_ids + unknown
    if planned.reads and planned.available_bytes < min(request.min_bytes, max_bytes):
        # The answer ends with a whole batch where it can; what is left out of it counts all the same, or a
        # limit that lies inside a batch would never be reached.
        planned.available_bytes = max(planned.available_bytes, min(_readable_bytes(planned), max_bytes))
    return planned


def _read_partition(
    wanted: WantedPartition, partition: LedPartition, limit: Any, left: int, first: bool
) -> tuple[PartitionData, ReadPlan | None]:
    """The answer without its records, and how to read them; no plan if the reader's log has diverged.

    Raises:
        KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE or a storage error.
    """
    check_leader_epoch(partition, max(wanted.current_leader_epoch, NO_LEADER_EPOCH))
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
            data.aborted_transactions = None
            return data, None
    max_bytes = min(wanted.max_bytes, left)
    plan = log.plan_read(wanted.fetch_offset, max_bytes, limit=limit, minimum_one_batch=first)
    if max_bytes < 0 and wanted.fetch_offset < log.limit_offset(limit):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if limit == "last_stable" and plan.size_bytes:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
            for txn in plan.aborted_transactions()
        ]
    elif max_bytes > 0 and wanted.fetch_offset < log.limit_offset(limit):
        data.aborted_transactions = None  # for a batch that does not fit, as Apache Kafka answers
    return data, plan


def check_leader_epoch(partition: LedPartition, current_leader_epoch: int) -> None:
    """Fence a client whose idea of the leader is not this one (-1: it has none).

    Raises:
        KafkaError: FENCED_LEADER_EPOCH if the client's epoch is older, UNKNOWN_LEADER_EPOCH if it is newer.
    """
    if current_leader_epoch == NO_LEADER_EPOCH:
        return
    if current_leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if current_leader_epoch > partition.leader_epoch:
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)


def _failed(wanted: WantedPartition, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=wanted.partition,
        error_code=int(error),
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _unknown(wanted: WantedPartition, error: ErrorCode) -> PartitionData:
    """The answer for a partition nobody knows: here, and only here, Kafka gives an empty aborted list."""
    answer = _failed(wanted, error)
    answer.aborted_transactions = []
    return answer


def _replica_id(request: FetchRequest) -> int:
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id


def _refused_whole(request: FetchRequest, error: ErrorCode, ctx: RequestContext) -> FetchResponse:
    """The answer when the request itself is at fault."""
    topics = []
    if ctx.version < TOPIC_ID_VERSION:
        topics = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=asked.partition,
                        error_code=int(error),
                        high_watermark=-1,
                        aborted_transactions=[],
                        records=b"",
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return FetchResponse(error_code=int(error), session_id=request.session_id, responses=topics)


def _response(
    request: FetchRequest, context: FetchContext, answers: Answers, ctx: RequestContext
) -> FetchResponse:
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
    if ctx.version >= LEADER_HINTS_VERSION:
        elsewhere = [(w.topic, w.partition, data) for w, data in listed if data.error_code in LED_ELSEWHERE]
        endpoints = LEADER_HINTS.add(elsewhere, ctx) if elsewhere else []
        # Followers know where the other brokers are.
        response.node_endpoints = [] if _replica_id(request) >= 0 else endpoints
    return response
