"""ShareAcknowledge (API key 79): acknowledge records of share partitions without fetching (KIP-932).

v1 is the first served, flexible; v2 renewals of the acquisition lock (KIP-1222), and its duration.

The answer comes when all acknowledgements are written. The last request of a session releases all records
that its member still has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.fetching.answer import LED_ELSEWHERE
from pykafka_broker.apis.leader_hints import LeaderHints
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.acknowledgements import RENEW_VERSION, acknowledge
from pykafka_broker.apis.sharing.members import end_session, member_of
from pykafka_broker.protocol.epochs import FINAL_EPOCH
from pykafka_broker.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.sharing.sessions import Member, Place
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.share.core.events import Result

LEADER_HINTS = LeaderHints(LeaderIdAndEpoch, NodeEndpoint)


def failed(_request: ShareAcknowledgeRequest, error: KafkaError) -> ShareAcknowledgeResponse:
    """The answer to a request that failed as a whole."""
    return ShareAcknowledgeResponse(error_code=int(error.code), responses=[], node_endpoints=[])


@handles(
    ShareAcknowledgeRequest,
    versions="1-2",
    needs=[
        on_groups(AclOperation.READ).asked_by_handler(),
        on_topics(AclOperation.READ).asked_by_handler(),
    ],
    error_response=failed,
)
async def share_acknowledge(
    request: ShareAcknowledgeRequest, ctx: RequestContext
) -> ShareAcknowledgeResponse:
    """Apply the acknowledgements of each partition, with its own error."""
    member = member_of(request.group_id, request.member_id, ctx)
    ctx.node.share_sessions.acknowledge(member, request.share_session_epoch)
    names = ctx.node.metadata.image.topic_names
    asked = (name for topic in request.topics if (name := names.get(topic.topic_id)) is not None)
    denied = denied_topics(ctx, AclOperation.READ, asked)
    is_renewing = ctx.version >= RENEW_VERSION and request.is_renew_ack
    said = acknowledge(request.topics, member, ctx, denied, is_renewing=is_renewing)
    outcomes = await said.outcomes()
    if request.share_session_epoch == FINAL_EPOCH:
        end_session(ctx.node, member)
    return _response(outcomes, member, ctx)


def _response(
    outcomes: Mapping[Place, Result], member: Member, ctx: RequestContext
) -> ShareAcknowledgeResponse:
    names = ctx.node.metadata.image.topic_names
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    elsewhere = []
    for (topic_id, index), outcome in outcomes.items():
        answer = PartitionData(
            partition_index=index,
            error_code=int(outcome.error),
            error_message=outcome.message,
            current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        )
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(answer)
        if outcome.error in LED_ELSEWHERE:
            elsewhere.append((names.get(topic_id), index, answer))
    settings = ctx.node.share_partitions.settings_of(member.group_id)
    return ShareAcknowledgeResponse(
        error_code=0,
        acquisition_lock_timeout_ms=settings.partitions.record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=LEADER_HINTS.add(elsewhere, ctx) if elsewhere else [],
    )
