"""The plan of a Fetch's answer: for each partition its answer without records, and the read of its records.

Planning looks up an index and reads no data. Beside a count of requests it changes only `waits` (`Waits`): it
notes the log and the leader epoch of each partition, and that a partition without records or news is settled.
So a parked fetch is planned again each time it is woken, but its settled partitions are skipped until their
logs move. The progress of a follower is in `progress`, to be reported once. The first non-empty partition
returns at least one whole batch, even above both limits (KIP-74).
"""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.fetching.answer import Answers, failed, unknown
from pykafka_broker.apis.fetching.followed import followed
from pykafka_broker.apis.fetching.kept_waits import Waited, Waits, Wanted
from pykafka_broker.apis.fetching.replica import replica_id_of
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, AclOperation
from pykafka_broker.log.partition.read_plan import nothing_at
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    PartitionData,
)
from pykafka_broker.protocol.records.batch import NO_LEADER_EPOCH
from pykafka_broker.replication.core.access import (
    CONSUMER_REPLICA_ID,
    check_leader_epoch,
    check_topic_id,
    limit_of_fetch,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.fetching.sessions import FetchContext, WantedPartition
    from pykafka_broker.apis.ports.partitions import HeldPartition, LedPartition
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
        "enough_bytes",
        "late",
        "open",
        "progress",
        "reads",
        "unknown",
        "waits",
    )

    def __init__(self, waits: Waits, enough_bytes: int) -> None:
        #: The number of bytes that ends the wait.
        self.enough_bytes = enough_bytes
        #: A settled partition is left out unless it was planned now or the answer lists all partitions.
        self.answers: Answers = []
        self.reads: list[tuple[PartitionData, ReadPlan, PartitionLog]] = []
        #: Logs with an unfinished disk read of an earlier fetch; they count as empty until it ends.
        self.late: list[PartitionLog] = []
        self.waits = waits
        #: The partitions of `waits` that are not settled.
        self.open: list[Waited] = []
        self.available_bytes = 0
        self.at_once = False
        #: The partitions in which a follower has everything below the offset that it asks for.
        self.progress: list[tuple[LedPartition, WantedPartition, PartitionData]] = []
        #: Partitions that do not exist, and did not exist before the wait.
        self.unknown: set[WantedPartition] = set()

    def refuse(self, errors: Mapping[WantedPartition, ErrorCode]) -> None:
        """Answer these partitions with errors instead of their planned answers."""
        dropped = {id(data) for wanted, data in self.answers if wanted in errors}
        for wanted in errors:
            self.waits.settled.pop(wanted, None)
        self.open = [waited for waited in self.open if waited.wanted not in errors]
        self.reads = [read for read in self.reads if id(read[0]) not in dropped]
        self.answers = [answer for answer in self.answers if answer[0] not in errors]
        self.answers += [(wanted, failed(wanted, error)) for wanted, error in errors.items()]
        self.at_once = True

    def reopen(self, news: Mapping[WantedPartition, tuple[Waited, PartitionData]]) -> None:
        """Include these settled partitions in the answer after all: they have news."""
        listed = {wanted for wanted, _ in self.answers}
        for wanted, (waited, data) in news.items():
            self.waits.settled.pop(wanted, None)
            self.open.append(waited)
            if wanted not in listed:
                self.answers.append((wanted, data))

    @property
    def has_to_wait(self) -> bool:
        """Whether there are too few bytes, and no news."""
        return not self.at_once and self.available_bytes < self.enough_bytes

    @property
    def logs(self) -> list[PartitionLog]:
        """The logs whose moves may end the wait."""
        settled = [waited.log for waited in self.waits.settled.values()]
        return [*settled, *[waited.log for waited in self.open], *self.late]

    @property
    def waited_for(self) -> int:
        """The number of partitions that may end the wait."""
        return len(self.waits.settled) + len(self.open) + len(self.late)


def plan_fetch(
    request: FetchRequest,
    context: FetchContext,
    max_bytes: int,
    ctx: RequestContext,
    before: PlannedFetch | None = None,
    waits: Waits | None = None,
) -> PlannedFetch:
    """Plan the answer as of now; `before` is the plan with which the fetch has waited.

    Partitions settled in `waits`, or in `before.waits`, are not planned again.
    """
    if before is not None:
        waits = before.waits
    elif waits is None:
        waits = Waits(limit_of_fetch(replica_id_of(request), request.isolation_level))
    planner = _Planner(request, context, max_bytes, ctx, before, waits)
    unsettled = _unsettled(context, waits.settled)
    if planner.replica_id < 0:
        planner.hidden = _hidden(unsettled, ctx)
    plan = planner.plan
    for wanted in unsettled:
        plan(wanted)
    return planner.finish(max_bytes)


class _Planner:
    """Plans the partitions of one fetch, one after the other."""

    __slots__ = (
        "before",
        "context",
        "ctx",
        "from_any_replica",
        "hidden",
        "left",
        "planned",
        "rack",
        "replica_id",
        "unknown_ids",
        "unknown_partitions",
        "waits",
    )

    def __init__(
        self,
        request: FetchRequest,
        context: FetchContext,
        max_bytes: int,
        ctx: RequestContext,
        before: PlannedFetch | None,
        waits: Waits,
    ) -> None:
        self.context = context
        self.ctx = ctx
        self.before = before
        self.waits = waits
        self.planned = PlannedFetch(waits, min(request.min_bytes, max_bytes))
        self.replica_id = replica_id = replica_id_of(request)
        is_old_consumer = replica_id == CONSUMER_REPLICA_ID and ctx.version < READ_REPLICA_VERSION
        self.from_any_replica = replica_id < 0 and not is_old_consumer
        #: The rack of a consumer that may be redirected to a nearer replica.
        self.rack = request.rack_id if self.from_any_replica and ctx.node.fetching.selects_by_rack else ""
        #: The topics that the consumer may not read.
        self.hidden: Set[str] | tuple[()] = ()
        self.left = max_bytes
        self.unknown_ids: Answers = []
        self.unknown_partitions: Answers = []

    def plan(self, wanted: WantedPartition) -> None:
        """Plan one partition."""
        topic = wanted.topic
        if topic is None:
            self.unknown_ids.append((wanted, unknown(wanted, ErrorCode.UNKNOWN_TOPIC_ID)))
            return
        if self.hidden and topic in self.hidden:
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            self.unknown_partitions.append((wanted, unknown(wanted, denied)))
            return
        leading = self.ctx.node.partitions.led(topic, wanted.partition)
        leader_epoch = max(wanted.current_leader_epoch, NO_LEADER_EPOCH)
        try:
            partition = self._followed(wanted, topic, leader_epoch) if leading is None else leading
            if partition is None:
                return
            partition.counts.fetch_requests += 1
            check_topic_id(partition.topic_id, wanted.topic_id)
            check_leader_epoch(partition.leader_epoch, leader_epoch)
            if leading is not None and self.replica_id >= 0:
                found = self._read_for_follower(wanted, leading, leader_epoch)
                if found is None:
                    return
                data, plan = found
            elif self.rack and leading is not None and (near := self._nearest(wanted, leading)) is not None:
                data, plan = near, None
            else:
                limit, first = self.waits.limit, not self.planned.reads
                data, plan = _read_partition(wanted, partition.log, limit, self.left, first=first)
        except KafkaError as error:
            self.planned.answers.append((wanted, failed(wanted, error.code)))
            self.planned.at_once = True
            return
        self._answer(wanted, partition, data, plan, leading)

    def _followed(self, wanted: WantedPartition, topic: str, leader_epoch: int) -> HeldPartition | None:
        """The partition that is not led here, if the reader may read from it; None if it does not exist."""
        try:
            return followed(
                self.ctx.node.partitions,
                topic,
                wanted.partition,
                leader_epoch,
                topic_id=wanted.topic_id,
                from_any_replica=self.from_any_replica,
            )
        except KafkaError as error:
            gone = self.before is not None and wanted not in self.before.unknown
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or gone:
                raise
            self.planned.unknown.add(wanted)
            self.unknown_partitions.append((wanted, unknown(wanted, error.code)))
            return None

    def _nearest(self, wanted: WantedPartition, leading: LedPartition) -> PartitionData | None:
        """The answer that redirects a consumer to a nearer replica; None if there is none."""
        listener_name = self.ctx.connection.listener_name
        replica_id = leading.nearest_replica(self.rack, wanted.fetch_offset, listener_name)
        if replica_id is None:
            return None
        data = _without_records(wanted, leading.log)
        data.preferred_read_replica = replica_id
        return data

    def _read_for_follower(
        self, wanted: WantedPartition, leading: LedPartition, leader_epoch: int
    ) -> tuple[PartitionData, ReadPlan | None] | None:
        """The answer without its records, and the plan to read them; None if the partition is settled."""
        log, waits = leading.log, self.waits
        leading.check_follower(self.replica_id, leader_epoch)
        has_all = self.context.lists_news and _has_all(wanted, log)
        plan: ReadPlan | None
        if has_all:
            data, plan = _without_records(wanted, log), nothing_at(wanted.fetch_offset)
        else:
            data, plan = _read_partition(wanted, log, waits.limit, self.left, first=not self.planned.reads)
        if plan is not None and self.before is None:
            # A parked fetch shows no new progress when it is planned again.
            self.planned.progress.append((leading, wanted, data))
        if has_all and wanted.knows(log.state) and self._may_settle(leading):
            waits.settled[wanted] = waits.by_log[log] = Waited(wanted, log, leading, leading.leader_epoch)
            return None
        return data, plan

    def _may_settle(self, leading: LedPartition | None) -> bool:
        """False if the next fetch of this follower must be planned: its progress may let it join the ISR."""
        return self.before is None or leading is None or not leading.expects(self.replica_id)

    def _answer(
        self,
        wanted: WantedPartition,
        partition: HeldPartition,
        data: PartitionData,
        plan: ReadPlan | None,
        leading: LedPartition | None,
    ) -> None:
        """Answer with these data, and with the records of the plan unless they have to wait."""
        planned, waits, log = self.planned, self.waits, partition.log
        planned.answers.append((wanted, data))
        if plan is not None and plan.size_bytes:
            cold_reads = self.ctx.node.cold_reads
            if cold_reads.is_late(log) and plan.answer_cached(partial(cold_reads.run, log)) is None:
                planned.late.append(log)
                waits.by_log.pop(log, None)
                return
            if self.replica_id >= 0 and leading is not None and leading.throttle.holds_back(self.replica_id):
                return  # a throttled follower: the records do not end the wait either
        waited = waits.by_log[log] = Waited(wanted, log, partition, partition.leader_epoch)
        if (
            plan is not None
            and not self.rack
            and _is_settled(wanted, log, waits.limit, data, self.context)
            and self._may_settle(leading)
        ):
            waits.settled[wanted] = waited
            return
        planned.open.append(waited)
        if plan is None:
            planned.at_once = True
        elif plan.size_bytes:
            planned.reads.append((data, plan, log))
            planned.available_bytes += plan.size_bytes
            self.left = max(0, self.left - plan.size_bytes)

    def finish(self, max_bytes: int) -> PlannedFetch:
        """The plan of all partitions."""
        planned, waits, before = self.planned, self.waits, self.before
        # A partition that does not exist does not end the wait for others; without others there is no wait.
        planned.at_once = planned.at_once or not (planned.answers or waits.settled)
        if before is not None and not self.context.lists_news:
            planned.answers = _with_settled(planned, before, self.context)
        planned.answers += self.unknown_ids + self.unknown_partitions
        if planned.reads and planned.available_bytes < planned.enough_bytes:
            # Whole batches may fall short of a limit inside the next batch; count the bytes up to the limit,
            # or there would never be enough.
            readable_bytes = sum([waited.readable_bytes(waits.limit) for waited in planned.open])
            planned.available_bytes = max(planned.available_bytes, min(readable_bytes, max_bytes))
        return planned


def _unsettled(context: FetchContext, settled: Collection[Wanted]) -> Collection[WantedPartition]:
    """The partitions to plan, in order."""
    if not settled:
        return context.wanted.values()
    if len(settled) == len(context.wanted):
        return ()
    return [wanted for wanted in context.wanted.values() if wanted not in settled]


def _is_settled(
    wanted: WantedPartition, log: PartitionLog, limit: Limit, data: PartitionData, context: FetchContext
) -> bool:
    """Whether the partition has nothing to read and no news to list until its log moves."""
    state = log.state
    has_news = context.lists_news and wanted.is_news(data)
    return wanted.fetch_offset >= state.limit_offset(limit) and not has_news


def _with_settled(planned: PlannedFetch, before: PlannedFetch, context: FetchContext) -> Answers:
    """The answers of all partitions in order; settled partitions keep their answers in `before`."""
    settled = planned.waits.settled
    answers = {wanted: data for wanted, data in before.answers if wanted in settled}
    answers.update(planned.answers)
    return [(wanted, answers[wanted]) for wanted in context.wanted.values() if wanted in answers]


def _hidden(partitions: Iterable[WantedPartition], ctx: RequestContext) -> Set[str] | tuple[()]:
    """The topics of these partitions that the consumer may not read."""
    if ctx.node.authorizer is ALLOW_ALL:
        return ()
    names = (wanted.topic for wanted in partitions if wanted.topic is not None)
    return denied_topics(ctx, AclOperation.READ, names)


def _has_all(wanted: WantedPartition, log: PartitionLog) -> bool:
    """Whether a follower has everything in the log, which is the usual case."""
    state = log.state
    return wanted.fetch_offset == state.log_end_offset and wanted.last_fetched_epoch == state.latest_epoch


def _read_partition(
    wanted: WantedPartition, log: PartitionLog, limit: Limit, left: int, first: bool
) -> tuple[PartitionData, ReadPlan | None]:
    """The answer without its records, and the plan to read them; None if the reader's log has diverged.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE or a storage error.
    """
    state, fetch_offset, data = log.state, wanted.fetch_offset, _without_records(wanted, log)
    if limit == "last_stable":
        data.aborted_transactions = []
    # A reader with the latest epoch and an offset within the log cannot have diverged.
    if wanted.last_fetched_epoch >= 0 and (
        wanted.last_fetched_epoch != state.latest_epoch or fetch_offset > state.log_end_offset
    ):
        epoch, end_offset = log.reader.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or fetch_offset < state.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < fetch_offset:
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
            data.aborted_transactions = None
            return data, None
    max_bytes = min(wanted.max_bytes, left)
    plan = log.reader.plan_read(fetch_offset, max_bytes, limit=limit, minimum_one_batch=first)
    if max_bytes < 0 and fetch_offset < state.limit_offset(limit):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if limit == "last_stable" and plan.size_bytes:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
            for txn in plan.aborted_transactions()
        ]
    elif limit == "last_stable" and max_bytes > 0 and fetch_offset < state.limit_offset(limit):
        data.aborted_transactions = None  # for a batch that does not fit, as Apache Kafka answers
    return data, plan


def _without_records(wanted: WantedPartition, log: PartitionLog) -> PartitionData:
    state = log.state
    return PartitionData(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=state.high_watermark,
        last_stable_offset=state.last_stable_offset,
        log_start_offset=state.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )
