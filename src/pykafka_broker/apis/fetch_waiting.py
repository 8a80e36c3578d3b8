"""A Fetch that cannot be answered at once: parked until one of its partitions moves, or waiting for disks.

Records that are not in the page cache are read by a thread for their disk, all disks at the same time. A
partition whose disk does not answer in time is answered without records, and counts as empty until its read
has ended.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.fetch_answer import response
from pykafka_broker.apis.fetch_plan import PlannedFetch, has_error, plan_fetch, readable_bytes
from pykafka_broker.apis.fetch_replica import replica_id_of
from pykafka_broker.apis.quiet_fetches import QuietLogs
from pykafka_broker.log.segment.stored_records import LEAST_BYTES
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.fetch_sessions import FetchContext
    from pykafka_broker.apis.ports.node import NodePorts
    from pykafka_broker.apis.ports.partitions import LedPartition
    from pykafka_broker.apis.ports.threads import Reading
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.machine.threads import RunBlocking

#: The longest wait for disks when other partitions have enough to answer.
DISK_PATIENCE_MS = 100
#: The longest wait when they have not; then the fetch is parked like one that finds nothing.
LONG_DISK_PATIENCE_MS = 1_000

_ColdRead = tuple[PartitionData, "PartitionLog", "Reading[Any]"]


async def park(
    request: FetchRequest,
    context: FetchContext,
    max_bytes: int,
    planned: PlannedFetch,
    until_ms: int,
    ctx: RequestContext,
) -> FetchResponse:
    """Wait until there is enough to read or something to tell, but not after `until_ms`; then answer."""
    node = ctx.node
    enough_bytes = min(request.min_bytes, max_bytes)
    if _may_answer(planned, enough_bytes):
        # Other connections ran between the plan and this coroutine's first step, when nothing was parked yet.
        planned = plan_fetch(request, context, max_bytes, ctx, planned)
    replica_id = replica_id_of(request)
    while planned.available_bytes < enough_bytes and not planned.at_once:
        watched = [*planned.logs, *planned.late]
        watched_logs = len(watched)
        if replica_id >= 0:
            watched.append(node.fetching.awaited.moves(replica_id))
            until_ms = min(until_ms, until_ms_of(request, node))
        ready = _ready(planned, enough_bytes)
        moved = await node.purgatory.wait(watched, until_ms, ctx.connection, ready)
        # Others may have been answered meanwhile, and may not have read their answers.
        max_bytes = min(max_bytes, ctx.connection.answer_budget_bytes)
        enough_bytes = min(enough_bytes, max_bytes)
        planned = plan_fetch(request, context, max_bytes, ctx, planned)
        if not moved or len(planned.logs) + len(planned.late) < watched_logs:
            # Time is up, or a topic was deleted meanwhile, which its reader must learn at once.
            if not moved and replica_id >= 0 and _is_quiet(planned, context):
                quiet_until_ms = node.clock.monotonic_ms() + node.fetching.quiet_ms
                context.listen(QuietLogs(planned.logs, _ready(planned, enough_bytes), quiet_until_ms))
            break
    return await read_from_disks(request, context, planned, until_ms, max_bytes, ctx)


def _is_quiet(planned: PlannedFetch, context: FetchContext) -> bool:
    """Whether there is nothing to read or to tell, and none of the partitions is held back or unknown."""
    is_empty = not (planned.at_once or planned.reads)
    return is_empty and context.may_listen and len(planned.logs) == len(context.wanted)


async def park_quietly(
    request: FetchRequest, context: FetchContext, quiet: QuietLogs, ctx: RequestContext
) -> FetchResponse:
    """Wait as the fetch before has waited in vain; its plan holds while nothing moves."""
    node = ctx.node
    until_ms = until_ms_of(request, node)
    watched: list[Any] = [quiet, node.fetching.awaited.moves(replica_id_of(request))]
    moved = await node.purgatory.wait(watched, until_ms, ctx.connection)
    if not moved and not quiet.has_moved:
        return response(request, context, [], ctx)
    if context.quiet is quiet:
        context.listen(None)
    max_bytes = min(request.max_bytes, node.fetching.max_bytes, ctx.connection.answer_budget_bytes)
    planned = plan_fetch(request, context, max_bytes, ctx)
    return await park(request, context, max_bytes, planned, until_ms, ctx)


def until_ms_of(request: FetchRequest, node: NodePorts) -> int:
    """Until when a fetch that begins to wait now may wait."""
    wait_ms, replica_id = request.max_wait_ms, replica_id_of(request)
    if replica_id >= 0:
        wait_ms = node.fetching.awaited.wait_ms(replica_id, wait_ms)
    return node.clock.now_ms() + wait_ms


def _may_answer(planned: PlannedFetch, enough_bytes: int) -> bool:
    """True if planning again may find enough bytes, or an error."""
    for log, (offset, _) in zip(planned.logs, planned.wanted_at, strict=True):
        if has_error(log, offset):
            return True
    return readable_bytes(planned) >= enough_bytes


def _ready(planned: PlannedFetch, enough_bytes: int) -> Callable[[PartitionLog], bool] | None:
    """The question that decides whether a move of a log wakes the fetch; None if every move does.

    Any move satisfies a reader of one byte where all that is appended is committed at once. Elsewhere logs
    move for followers too, before anything is committed.
    """
    if enough_bytes > 1:
        return _Enough(planned, enough_bytes)
    if all(partition.acknowledges_at_once for partition, _ in planned.led_by):
        return None
    return _Anything(planned)


class _WaitedAt(NamedTuple):
    """Where a parked fetch waits in a log."""

    offset: int
    max_bytes: int
    partition: LedPartition
    leader_epoch: int

    def has_news(self, log: PartitionLog) -> bool:
        """There is an error to tell, or another broker may lead."""
        return has_error(log, self.offset) or self.partition.leader_epoch != self.leader_epoch


def _waited_at(planned: PlannedFetch) -> dict[PartitionLog, _WaitedAt]:
    return {
        log: _WaitedAt(*wanted_at, *led_by)
        for log, wanted_at, led_by in zip(planned.logs, planned.wanted_at, planned.led_by, strict=True)
    }


class _Anything:
    """Tells whether there may be anything to read or to tell for a parked fetch of one byte."""

    __slots__ = ("_limit", "_waited_at")

    def __init__(self, planned: PlannedFetch) -> None:
        self._limit = planned.limit
        self._waited_at = _waited_at(planned)

    def __call__(self, log: PartitionLog) -> bool:
        waited_at = self._waited_at.get(log)
        return (
            waited_at is None  # a late read has ended, or a leadership has begun
            or log.state.limit_offset(self._limit) > waited_at.offset
            or waited_at.has_news(log)
        )


class _Enough:
    """Tells whether there may be enough for a parked fetch. Called when a log moves, it looks at that log
    only: a reader of a thousand partitions costs the writers of each no more than a reader of one.
    """

    __slots__ = ("_limit", "_missing_bytes", "_readable", "_waited_at")

    def __init__(self, planned: PlannedFetch, enough_bytes: int) -> None:
        self._limit = planned.limit
        self._waited_at = _waited_at(planned)
        self._readable = {log: self._readable_in(log) for log in planned.logs}
        self._missing_bytes = enough_bytes - sum(self._readable.values())

    def __call__(self, log: PartitionLog) -> bool:
        if log not in self._waited_at or self._waited_at[log].has_news(log):
            return True  # a late read has ended, a leadership has begun, or there is an error to tell
        readable = self._readable_in(log)
        self._missing_bytes -= readable - self._readable[log]
        self._readable[log] = readable
        return self._missing_bytes <= 0

    def _readable_in(self, log: PartitionLog) -> int:
        waited_at = self._waited_at[log]
        return min(log.reader.available_bytes(waited_at.offset, self._limit), waited_at.max_bytes)


async def read_from_disks(
    request: FetchRequest,
    context: FetchContext,
    planned: PlannedFetch,
    until_ms: int,
    max_bytes: int,
    ctx: RequestContext,
) -> FetchResponse:
    """Answer with the records that the disks give in time; park again if they are not enough."""
    cold: list[_ColdRead] = []
    for data, plan, log in planned.reads:
        read_cold: RunBlocking = partial(ctx.node.cold_reads.run, log)
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
        planned = plan_fetch(request, context, max_bytes, ctx, planned)
        return await park(request, context, max_bytes, planned, until_ms, ctx)
    return response(request, context, planned.answers, ctx)


async def _wait_for_disks(
    cold: list[_ColdRead], planned: PlannedFetch, enough_bytes: int, node: NodePorts
) -> bool:
    """Take the records that the disks give in time; return whether they are enough to answer."""
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
