"""ShareFetch (API key 78): acquire records of share partitions, and acknowledge earlier ones (KIP-932).

v1 is the first served, flexible; v2 strict limits of records (KIP-1206) and renewals of locks (KIP-1222).

Acknowledgements are applied before the fetch begins, and may be written while it waits. The answer comes when
both are done. The last request of a session only acknowledges, and then releases all records that its member
still has. A request that renews locks fetches nothing either.

Sessions, acknowledgements, the wait and the read are in `sharing/`. The share partition decides which records
a member gets (`share/core/acquire.py`).

A consumer over its quota gets no records, but a throttle time. Apache Kafka acquires records for it and
answers without them, so that they stay locked until their lock expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.fetching.answer import FRAME_LENGTH_BYTES, LED_ELSEWHERE
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.apis.sharing.acknowledgements import RENEW_VERSION, acknowledge, is_anything_said
from pykafka_broker.apis.sharing.members import (
    drop_pushed_out,
    end_session,
    end_with_connection,
    member_of,
)
from pykafka_broker.apis.sharing.waiting import ShareFetch, ShareLimits, answer_of
from pykafka_broker.protocol.compile import encoded_size
from pykafka_broker.protocol.epochs import FINAL_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from pykafka_broker.share.core.events import AcquireMode, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.sharing.sessions import Answer, Member, Place, ShareContext, SharedPartition
    from pykafka_broker.replication.topic_counts import TopicCounts

LEADER_HINTS = LeaderHints(LeaderIdAndEpoch, NodeEndpoint)


def failed(_request: ShareFetchRequest, error: KafkaError) -> ShareFetchResponse:
    """The answer to a request that failed as a whole."""
    return ShareFetchResponse(
        error_code=int(error.code), acquisition_lock_timeout_ms=0, responses=[], node_endpoints=[]
    )


@handles(
    ShareFetchRequest,
    versions="1-2",
    needs=[
        on_groups(AclOperation.READ).asked_by_handler(),
        on_topics(AclOperation.READ).asked_by_handler(),
    ],
    quota=Quota.FETCH,
    error_response=failed,
)
async def share_fetch(request: ShareFetchRequest, ctx: RequestContext) -> ShareFetchResponse:
    """Apply the acknowledgements, fetch, and answer with both results."""
    member = member_of(request.group_id, request.member_id, ctx)
    is_renewing = ctx.version >= RENEW_VERSION and request.is_renew_ack
    if is_renewing and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    context = await _begin(request, member, ctx)
    denied = _denied(request, context, ctx)
    topics = request.topics if is_anything_said(request.topics) else ()
    said = acknowledge(topics, member, ctx, denied, is_renewing=is_renewing)
    throttle_ms = _throttle_ms(ctx)
    answers = [] if is_renewing or throttle_ms else await _fetch(request, context, member, denied, ctx)
    response = _response(context, answers, await said.outcomes(), member, ctx)
    if request.share_session_epoch == FINAL_EPOCH:
        end_session(ctx.node, member)
    if ctx.node.quotas.is_active and not throttle_ms:
        size = FRAME_LENGTH_BYTES + encoded_size(response, ctx.version)
        throttle_ms = ctx.node.quotas.record(Quota.FETCH, ctx, size)
    response.throttle_time_ms = throttle_ms
    return response


async def _begin(request: ShareFetchRequest, member: Member, ctx: RequestContext) -> ShareContext:
    """Begin or continue the session.

    Raises:
        KafkaError: the session's error; that of too many sessions only after the fetch's `max_wait_ms`.
    """
    node, connection = ctx.node, ctx.connection
    asked = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    forgotten = [
        (topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    image = node.metadata.image
    is_new = not node.share_sessions.has_begun_on(connection)
    try:
        context = node.share_sessions.begin(
            member,
            request.share_session_epoch,
            asked,
            forgotten,
            lambda topic_id: image.topic_names.get(topic_id),
            has_acknowledgements=is_anything_said(request.topics),
            connection=connection,
        )
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await node.purgatory.wait((), node.clock.monotonic_ms() + request.max_wait_ms, connection)
        raise
    finally:
        drop_pushed_out(node)
    if is_new and node.share_sessions.has_begun_on(connection):
        end_with_connection(ctx)
    return context


def _denied(request: ShareFetchRequest, context: ShareContext, ctx: RequestContext) -> Set[str]:
    """The topics of the session and of the request that the client may not read."""
    names = ctx.node.metadata.image.topic_names
    asked = (name for topic in request.topics if (name := names.get(topic.topic_id)) is not None)
    fetched = (partition.topic for partition in context.partitions if partition.topic is not None)
    return denied_topics(ctx, AclOperation.READ, (*fetched, *asked))


def _throttle_ms(ctx: RequestContext) -> int:
    """How long the consumer has to wait before it may get records."""
    if not ctx.node.quotas.is_active:
        return 0
    record = ctx.node.quotas.record
    return max(record(Quota.REQUEST, ctx, 0), record(Quota.FETCH, ctx, 0))


async def _fetch(
    request: ShareFetchRequest, context: ShareContext, member: Member, denied: Set[str], ctx: RequestContext
) -> list[Answer]:
    """The answers of the partitions with records or an error."""
    refused = [
        (partition.place, answer_of(partition.place, error))
        for partition in context.partitions
        if (error := _refusal(partition, denied, ctx)) is not ErrorCode.NONE
    ]
    left = [
        (partition.place, partition.topic)
        for partition in context.partitions
        if partition.topic is not None and _refusal(partition, denied, ctx) is ErrorCode.NONE
    ]
    if not left:
        return refused
    limits = _limits(request, ctx)
    if not limits.max_records or not limits.max_bytes:
        return refused
    if request.share_session_epoch > 0:
        # Rotate, so that every partition comes first at times.
        turn = request.share_session_epoch % len(left)
        left = left[turn:] + left[:turn]
    topics: dict[bytes, TopicCounts] = {}
    for (topic_id, _), name in left:
        if topic_id not in topics and (counts := ctx.node.partitions.counts.topics.get(name)) is not None:
            topics[topic_id] = counts
            counts.share_fetch_requests += 1
    answers = await ShareFetch(left, member, limits, ctx).answers()
    for topic_id in {topic_id for (topic_id, _), answer in answers if answer.error_code}:
        if topic_id in topics:
            topics[topic_id].failed_share_fetch_requests += 1
    return refused + answers


def _refusal(partition: SharedPartition, denied: Set[str], ctx: RequestContext) -> ErrorCode:
    """The error of a partition that is not fetched, else NONE."""
    topic_id, index = partition.place
    if partition.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition.topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = ctx.node.metadata.image.topic_by_id(topic_id)
    if topic is None or index not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _limits(request: ShareFetchRequest, ctx: RequestContext) -> ShareLimits:
    """The limits that the client, the broker and the client's quota set.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR for an acquire mode that Apache Kafka does not know.
    """
    try:
        mode = AcquireMode(request.share_acquire_mode)
    except ValueError:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    max_bytes = min(request.max_bytes, ctx.node.fetching.max_bytes)
    if ctx.node.quotas.is_active:
        max_bytes = int(min(max_bytes, ctx.node.quotas.most_bytes_fetched(ctx)))
    return ShareLimits(
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.max_records,
        request.batch_size,
        mode,
    )


def _response(
    context: ShareContext,
    answers: list[Answer],
    outcomes: Mapping[Place, Result],
    member: Member,
    ctx: RequestContext,
) -> ShareFetchResponse:
    """The partitions that the session lists, and the outcomes of the acknowledgements."""
    names = ctx.node.metadata.image.topic_names
    error = ErrorCode.NONE
    try:
        listed = dict(context.listed(answers))
    except KafkaError as refused:
        error, listed = refused.code, {}
    elsewhere = [
        (names.get(topic_id), index, answer)
        for (topic_id, index), answer in listed.items()
        if answer.error_code in LED_ELSEWHERE
    ]
    endpoints = LEADER_HINTS.add(elsewhere, ctx) if elsewhere else []
    for place, outcome in outcomes.items():
        answer = listed.setdefault(place, answer_of(place))
        answer.acknowledge_error_code = int(outcome.error)
        answer.acknowledge_error_message = outcome.message
    settings = ctx.node.share_partitions.settings_of(member.group_id)
    return ShareFetchResponse(
        error_code=int(error),
        acquisition_lock_timeout_ms=settings.partitions.record_lock_duration_ms,
        responses=_topics(listed.items()),
        node_endpoints=endpoints,
    )


def _topics(answers: Iterable[Answer]) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), answer in answers:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(answer)
    return list(topics.values())
