"""A Fetch that cannot be answered at once: parked until one of its partitions moves, or waiting for disks.

Records that are not in the page cache are read by a thread of their disk, all disks in parallel. A partition
whose disk does not answer in time is answered without records, and counts as empty until its read ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.fetching.answer import response
from pykafka_broker.apis.fetching.kept_waits import KeptWaits, Waits
from pykafka_broker.apis.fetching.plan import PlannedFetch, plan_fetch
from pykafka_broker.apis.fetching.replica import follower_of, replica_id_of
from pykafka_broker.log.segment.stored_records import LEAST_BYTES
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.fetching.sessions import FetchContext
    from pykafka_broker.apis.ports.cold_reads import Reading
    from pykafka_broker.apis.ports.node import NodePorts
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.machine.threads import RunBlocking

#: The longest wait for disks if other partitions have enough records.
DISK_PATIENCE_MS = 100
#: The longest wait for disks otherwise; then the fetch is parked as if it had found nothing.
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
    """Wait until there are enough records or news, at most until `until_ms` (monotonic); then answer."""
    node = ctx.node
    replica_id = replica_id_of(request)
    while planned.has_to_wait:
        waited_for, ready, kept = planned.waited_for, _ready(planned), context.kept
        watched: list[Any] = planned.logs if kept is None else [kept]
        if replica_id >= 0:
            watched.append(node.fetching.awaited.moves(replica_id))
            until_ms = min(until_ms, until_ms_of(request, node))
        if kept is not None:
            kept.ready = ready
        moved = await node.purgatory.wait(watched, until_ms, ctx.connection, ready if kept is None else None)
        if not moved and replica_id >= 0:
            node.purgatory.expired_followers += 1
        elif not moved:
            node.purgatory.expired_consumers += 1
        # Other connections may have unread answers now, which lowers the budget.
        max_bytes = min(max_bytes, ctx.connection.answer_budget_bytes)
        planned = plan_fetch(request, context, max_bytes, ctx, planned)
        keep_waits(request, context, planned, ctx)
        if not moved or planned.waited_for < waited_for:
            # Time is up, or a topic was deleted meanwhile: answer at once.
            break
    return await read_from_disks(request, context, planned, until_ms, max_bytes, ctx)


def keep_waits(
    request: FetchRequest, context: FetchContext, planned: PlannedFetch, ctx: RequestContext
) -> None:
    """Keep this plan's waits for the next fetch of a follower's session.

    A plan with errors, or with partitions that are held back, late or unknown, is not kept.
    """
    if replica_id_of(request) < 0 or not context.may_keep:
        return
    kept = context.kept
    if planned.at_once or planned.late or planned.waited_for < len(context.wanted):
        context.keep(None)
    elif kept is not None and kept.waits is planned.waits:
        kept.listen()
    else:
        until_ms = ctx.node.clock.monotonic_ms() + ctx.node.fetching.quiet_ms
        context.keep(KeptWaits(planned.waits, follower_of(request), until_ms))


def until_ms_of(request: FetchRequest, node: NodePorts) -> int:
    """The end of the wait of a fetch that begins to wait now (monotonic)."""
    wait_ms, replica_id = request.max_wait_ms, replica_id_of(request)
    if replica_id >= 0:
        wait_ms = node.fetching.awaited.wait_ms(replica_id, wait_ms)
    return node.clock.monotonic_ms() + wait_ms


def _ready(planned: PlannedFetch) -> Callable[[PartitionLog], bool]:
    """The predicate that decides whether a move of a log wakes the fetch; it also notes the move.

    Not every move concerns this fetch: followers read records before they are committed, consumers after.
    """
    return _Anything(planned.waits) if planned.enough_bytes <= 1 else _Enough(planned)


class _Anything:
    """Whether a moved log may have records or news for a parked fetch of one byte."""

    __slots__ = ("_waits",)

    def __init__(self, waits: Waits) -> None:
        self._waits = waits

    def __call__(self, log: PartitionLog) -> bool:
        waited = self._waits.moved(log)
        return (
            waited is None  # a late read has ended, or a leadership has begun
            or log.state.limit_offset(self._waits.limit) > waited.wanted.fetch_offset
            or waited.has_news
        )


class _Enough:
    """Whether there may be enough records for a parked fetch. A call looks only at the log that moved: a
    reader of a thousand partitions costs the writers of each no more than a reader of one.
    """

    __slots__ = ("_missing_bytes", "_readable", "_waits")

    def __init__(self, planned: PlannedFetch) -> None:
        self._waits = waits = planned.waits
        #: The readable bytes by log, of logs that have some.
        self._readable = {waited.log: waited.readable_bytes(waits.limit) for waited in planned.open}
        self._missing_bytes = planned.enough_bytes - sum(self._readable.values())

    def __call__(self, log: PartitionLog) -> bool:
        waited = self._waits.moved(log)
        if waited is None or waited.has_news:
            return True  # a late read has ended, a leadership has begun, or there is an error to report
        readable = waited.readable_bytes(self._waits.limit)
        self._missing_bytes -= readable - self._readable.get(log, 0)
        self._readable[log] = readable
        return self._missing_bytes <= 0


async def read_from_disks(
    request: FetchRequest,
    context: FetchContext,
    planned: PlannedFetch,
    until_ms: int,
    max_bytes: int,
    ctx: RequestContext,
) -> FetchResponse:
    """Answer with the records that are read in time; park again if they are not enough."""
    cold: list[_ColdRead] = []
    for data, plan, log in planned.reads:
        read_cold: RunBlocking = partial(ctx.node.cold_reads.run, log)
        records = plan.answer_cached(read_cold)
        if records is None:
            cold.append((data, log, ctx.node.cold_reads.run(log, partial(plan.answer, read_cold))))
        else:
            data.records = records
    # Larger records are not read into memory.
    in_memory_bytes = sum(min(plan.size_bytes, LEAST_BYTES) for _, plan, _ in planned.reads) if cold else 0
    ctx.connection.reads_ahead(in_memory_bytes)
    try:
        has_enough = await _wait_for_disks(cold, planned, ctx.node)
    finally:
        ctx.connection.reads_ahead(-in_memory_bytes)
    if not has_enough and ctx.node.clock.monotonic_ms() < until_ms:
        planned.waits.settled.clear()  # the fetch was not notified of moves of logs
        planned = plan_fetch(request, context, max_bytes, ctx, planned)
        keep_waits(request, context, planned, ctx)
        return await park(request, context, max_bytes, planned, until_ms, ctx)
    return response(request, context, planned.answers, ctx)


async def _wait_for_disks(cold: list[_ColdRead], planned: PlannedFetch, node: NodePorts) -> bool:
    """Take the records that are read in time; return whether they are enough to answer."""
    begun_ms = node.clock.monotonic_ms()
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
        has_enough = planned.at_once or read_bytes >= max(1, planned.enough_bytes)
        due_ms = begun_ms + (DISK_PATIENCE_MS if has_enough else LONG_DISK_PATIENCE_MS)
        if node.clock.monotonic_ms() >= due_ms:
            break
        await node.cold_reads.first_done(tuple(reading for _, _, reading in cold), due_ms)
    for data, log, reading in cold:
        node.cold_reads.give_up(log, reading)
        if data.aborted_transactions is not None:
            data.aborted_transactions = []
    return has_enough
