"""The plan of a Fetch's answer: for each partition its answer without records, and the read of its records.

Planning looks up an index and reads no data, so a parked fetch is planned anew each time it is woken. The
first non-empty partition gives at least one whole batch even above both limits (KIP-74).
"""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.authorization import denied_topics
from pykafka_broker.apis.fetch_answer import Answers, broker_epoch_of, failed, unknown
from pykafka_broker.apis.fetch_replica import replica_id_of
from pykafka_broker.apis.followed_partitions import DEBUGGING_REPLICA_ID, followed
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, AclOperation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    PartitionData,
)
from pykafka_broker.replication.core.access import (
    CONSUMER_LIMITS,
    CONSUMER_REPLICA_ID,
    NO_LEADER_EPOCH,
    check_leader_epoch,
    check_topic_id,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.fetch_sessions import FetchContext, WantedPartition
    from pykafka_broker.apis.ports.partitions import LedPartition
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.read_plan import ReadPlan

#: From this version on consumers may read from any replica (KIP-392).
READ_REPLICA_VERSION = 11


class PlannedFetch:
    """The answer to a fetch as of now: the partitions' answers, and the reads that fill in their records."""

    __slots__ = (
        "answers",
        "at_once",
        "available_bytes",
        "late",
        "led_by",
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
        #: For each log its partition, and the leader epoch as of now.
        self.led_by: list[tuple[LedPartition, int]] = []
        #: The limit of the reader.
        self.limit: Limit = "high_watermark"
        self.available_bytes = 0
        self.at_once = False
        #: Partitions that do not exist, and did not exist before the wait.
        self.unknown: set[WantedPartition] = set()


def plan_fetch(
    request: FetchRequest,
    context: FetchContext,
    max_bytes: int,
    ctx: RequestContext,
    before: PlannedFetch | None = None,
) -> PlannedFetch:
    """Plan the answer as of now; `before` is the plan with which the fetch has waited."""
    planned = PlannedFetch()
    limit = planned.limit = CONSUMER_LIMITS[request.isolation_level]
    replica_id = replica_id_of(request)
    if replica_id == DEBUGGING_REPLICA_ID:
        limit = planned.limit = "log_end"
    is_old_consumer = replica_id == CONSUMER_REPLICA_ID and ctx.version < READ_REPLICA_VERSION
    from_any_replica = replica_id < 0 and not is_old_consumer
    #: The rack of a consumer that may be sent to another replica.
    rack = request.rack_id if from_any_replica and ctx.node.fetching.selects_by_rack else ""
    left = max_bytes
    hidden = _hidden(context, ctx) if replica_id < 0 else ()
    unknown_ids: Answers = []
    unknown_partitions: Answers = []
    for wanted in context.wanted.values():
        if wanted.topic is None:
            unknown_ids.append((wanted, unknown(wanted, ErrorCode.UNKNOWN_TOPIC_ID)))
            continue
        if hidden and wanted.topic in hidden:
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            unknown_partitions.append((wanted, unknown(wanted, denied)))
            continue
        partition = ctx.node.partitions.led(wanted.topic, wanted.partition)
        leader_epoch = max(wanted.current_leader_epoch, NO_LEADER_EPOCH)
        try:
            if partition is None:
                try:
                    partition = followed(
                        ctx.node.partitions,
                        wanted.topic,
                        wanted.partition,
                        leader_epoch,
                        topic_id=wanted.topic_id,
                        from_any_replica=from_any_replica,
                    )
                except KafkaError as error:
                    gone = before is not None and wanted not in before.unknown
                    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or gone:
                        raise
                    planned.unknown.add(wanted)
                    unknown_partitions.append((wanted, unknown(wanted, error.code)))
                    continue
            check_topic_id(partition.topic_id, wanted.topic_id)
            check_leader_epoch(partition.leader_epoch, leader_epoch)
            if replica_id >= 0:
                limit = planned.limit = partition.limit_for_replica(replica_id, leader_epoch)
                data, plan = _read_partition(wanted, partition, limit, left, first=not planned.reads)
                if plan is not None and before is None:
                    # A parked fetch tells nothing new when it is planned again.
                    partition.follower_fetched(
                        replica_id,
                        broker_epoch_of(request),
                        wanted.fetch_offset,
                        wanted.asked_log_start_offset,
                    )
            elif (
                rack
                and (nearest := _nearest(wanted, partition, rack, ctx.connection.listener_name)) is not None
            ):
                data, plan = nearest, None
            else:
                data, plan = _read_partition(wanted, partition, limit, left, first=not planned.reads)
        except KafkaError as error:
            planned.answers.append((wanted, failed(wanted, error.code)))
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
        if plan is not None and plan.size_bytes and replica_id >= 0 and partition.is_held_back(replica_id):
            continue  # it is not waited for either
        planned.logs.append(log)
        planned.wanted_at.append((wanted.fetch_offset, wanted.max_bytes))
        planned.led_by.append((partition, partition.leader_epoch))
        if plan is None:
            planned.at_once = True
        elif plan.size_bytes:
            planned.reads.append((data, plan, log))
            planned.available_bytes += plan.size_bytes
            left = max(0, left - plan.size_bytes)
    # A partition that does not exist does not end the wait for others; if there are none, there is no wait.
    planned.at_once = planned.at_once or not planned.answers
    planned.answers += unknown_ids + unknown_partitions
    if planned.reads and planned.available_bytes < min(request.min_bytes, max_bytes):
        # The answer ends with a whole batch where it can; the rest up to the limit counts all the same, or a
        # limit that lies inside a batch would never be reached.
        planned.available_bytes = max(planned.available_bytes, min(readable_bytes(planned), max_bytes))
    return planned


def _hidden(context: FetchContext, ctx: RequestContext) -> Set[str] | tuple[()]:
    """The topics of a session that a consumer may not read (any more)."""
    if ctx.node.authorizer is ALLOW_ALL:
        return ()
    names = (wanted.topic for wanted in context.wanted.values() if wanted.topic is not None)
    return denied_topics(ctx, AclOperation.READ, names)


def _read_partition(
    wanted: WantedPartition, partition: LedPartition, limit: Limit, left: int, first: bool
) -> tuple[PartitionData, ReadPlan | None]:
    """The answer without its records, and how to read them; no plan if the reader's log has diverged.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE or a storage error.
    """
    log = partition.log
    data = _without_records(wanted, log)
    data.aborted_transactions = [] if limit == "last_stable" else None
    if wanted.last_fetched_epoch >= 0:
        epoch, end_offset = log.reader.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or wanted.fetch_offset < log.state.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
            data.aborted_transactions = None
            return data, None
    max_bytes = min(wanted.max_bytes, left)
    plan = log.reader.plan_read(wanted.fetch_offset, max_bytes, limit=limit, minimum_one_batch=first)
    if max_bytes < 0 and wanted.fetch_offset < log.state.limit_offset(limit):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if limit == "last_stable" and plan.size_bytes:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
            for txn in plan.aborted_transactions()
        ]
    elif max_bytes > 0 and wanted.fetch_offset < log.state.limit_offset(limit):
        data.aborted_transactions = None  # for a batch that does not fit, as Apache Kafka answers
    return data, plan


def _without_records(wanted: WantedPartition, log: PartitionLog) -> PartitionData:
    return PartitionData(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=log.state.high_watermark,
        last_stable_offset=log.state.last_stable_offset,
        log_start_offset=log.state.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )


def _nearest(
    wanted: WantedPartition, partition: LedPartition, rack: str, listener_name: str
) -> PartitionData | None:
    """The answer that sends a consumer to a replica nearer to it, if there is one."""
    replica_id = partition.nearest_replica(rack, wanted.fetch_offset, listener_name)
    if replica_id is None:
        return None
    data = _without_records(wanted, partition.log)
    data.preferred_read_replica = replica_id
    return data


def has_error(log: PartitionLog, offset: int) -> bool:
    state = log.state
    return state.closed or state.offline is not None or offset < state.log_start_offset


def readable_bytes(planned: PlannedFetch) -> int:
    """About how much there is to read now, each partition counting up to its own limit."""
    limit = planned.limit
    readable = 0
    for log, (offset, max_bytes) in zip(planned.logs, planned.wanted_at, strict=True):
        readable += min(log.reader.available_bytes(offset, limit), max_bytes)
    return readable
