"""ShareGroupHeartbeat (API key 76): join, stay in and leave a share group (KIP-932).

v1 is the first served, flexible. Members choose their ids. Checks that Apache Kafka's broker makes before it
asks the coordinator answer with an error code only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_topics
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.groups import serves_share_groups
from pykafka_broker.apis.sharing.members import is_member_id
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.share import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: ShareGroupHeartbeatRequest, error: KafkaError) -> ShareGroupHeartbeatResponse:
    """The answer to a request that failed as a whole."""
    return ShareGroupHeartbeatResponse(error_code=int(error.code), member_epoch=0, heartbeat_interval_ms=0)


@handles(
    ShareGroupHeartbeatRequest,
    versions="1",
    needs=[
        on_groups(AclOperation.READ).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, ctx: RequestContext
) -> ShareGroupHeartbeatResponse:
    """The coordinator answers at once; the answer has an assignment only if it is new."""
    refusal = _refusal(request, ctx)
    if refusal is not ErrorCode.NONE:
        return failed(request, KafkaError(refusal))
    groups, names = ctx.node.groups, request.subscribed_topic_names
    result = await groups.answer(
        request.group_id,
        lambda token: events.ShareGroupHeartbeat(
            token,
            groups.now_ms(),
            request.group_id,
            request.member_id,
            request.member_epoch,
            ctx.client_id or "",
            ctx.client_host,
            request.rack_id,
            None if names is None else tuple(names),
        ),
        refused=refusals.share_group_heartbeat
        if request.group_id.strip()
        else refusals.share_group_heartbeat_without_group_id,
    )
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in result.assignment
            ]
        )
    return ShareGroupHeartbeatResponse(
        error_code=int(result.error),
        error_message=result.error_message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment,
    )


def _refusal(request: ShareGroupHeartbeatRequest, ctx: RequestContext) -> ErrorCode:
    """The first error of the checks before the coordinator, in Apache Kafka's order; else NONE."""
    if not serves_share_groups(ctx):
        return ErrorCode.UNSUPPORTED_VERSION
    if denied_groups(ctx, AclOperation.READ, (request.group_id,)):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not is_member_id(request.member_id):
        return ErrorCode.INVALID_REQUEST
    if denied_topics(ctx, AclOperation.DESCRIBE, request.subscribed_topic_names or ()):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE
