"""Fetch (API key 1): read record batches, waiting for `min_bytes` if there are too few.

v4 is the first served (isolation level); v5 log start offset, v7 sessions (KIP-227), v9 leader epochs, v12
flexible and diverging epochs (KIP-595), v13 topic ids (KIP-516), v15 replica state, v16 leader endpoints
(KIP-951), v17 directory ids, v18 a replica's high watermark.

The answer comes at once if `max_wait_ms` is 0, no partition is left, there are enough bytes, a known
partition cannot be read, or the reader's log has diverged; else the fetch is parked until one of its
partitions moves. Partitions are only planned (an index look-up, no data) until the answer is due. Then
records in the page cache are answered at once, and a thread reads the others first; larger reads stay in
their file until they are sent, a piece at a time. A partition whose disk does not answer in time is answered
without records, and counts as empty until it does. The first non-empty partition returns at least one whole
batch, even above both limits (KIP-74).

This file has the order of events; all else is in `apis/fetching/`. `replication/core/access.py` decides the
limit of reads of consumers and of other brokers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import may_on_cluster
from pykafka_broker.apis.fetching.answer import refused_whole, response, unknown
from pykafka_broker.apis.fetching.parking import keep_waits, park, read_from_disks, until_ms_of
from pykafka_broker.apis.fetching.plan import plan_fetch
from pykafka_broker.apis.fetching.progress import report_progress
from pykafka_broker.apis.fetching.replica import follower_of, replica_id_of
from pykafka_broker.apis.needs import on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka_broker.replication.core.access import READ_COMMITTED, READ_UNCOMMITTED

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The answer to a request that failed as a whole."""
    return refused_whole(request, error.code)


@handles(
    FetchRequest,
    versions="4-18",
    needs=[
        partly_on_cluster(AclOperation.CLUSTER_ACTION).asked_by_handler(),
        on_topics(AclOperation.READ).asked_by_handler(),
    ],
    quota=Quota.FETCH,
    error_response=failed,
)
def fetch(request: FetchRequest, ctx: RequestContext) -> Any:
    """Answer at once if possible, else with a coroutine that parks."""
    image = ctx.node.metadata.image

    def name_of(topic_id: bytes) -> str | None:
        topic = image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return refused_whole(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    context = ctx.node.fetching.sessions.begin(request, ctx.version, ctx.node.clock.monotonic_ms(), name_of)
    if context.error is not ErrorCode.NONE:
        return response(request, context, [], ctx)
    if replica_id_of(request) >= 0:
        if not may_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answers = [(wanted, unknown(wanted, denied)) for wanted in context.wanted.values()]
            return response(request, context, answers, ctx)
        context.is_of_follower = True
    kept = context.kept
    if kept is not None and not kept.is_of(follower_of(request), ctx.node.clock.monotonic_ms()):
        context.keep(None)
        kept = None
    max_bytes = min(request.max_bytes, ctx.node.fetching.max_bytes, ctx.connection.answer_budget_bytes)
    if ctx.node.quotas.is_active and replica_id_of(request) < 0:
        max_bytes = int(min(max_bytes, ctx.node.quotas.most_bytes_fetched(ctx)))
    planned = plan_fetch(request, context, max_bytes, ctx, waits=None if kept is None else kept.waits)
    if planned.progress:
        report_progress(planned, follower_of(request))
    keep_waits(request, context, planned, ctx)
    if request.max_wait_ms > 0 and planned.has_to_wait:
        return park(request, context, max_bytes, planned, until_ms_of(request, ctx.node), ctx)
    for data, plan, log in planned.reads:
        records = plan.answer_cached(partial(ctx.node.cold_reads.run, log))
        if records is None:
            until_ms = until_ms_of(request, ctx.node)
            return read_from_disks(request, context, planned, until_ms, max_bytes, ctx)
        data.records = records
    return response(request, context, planned.answers, ctx)
