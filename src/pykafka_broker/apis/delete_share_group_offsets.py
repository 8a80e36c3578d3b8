"""DeleteShareGroupOffsets (API key 92): delete the offsets of a share group without members (KIP-932).

v0 is the only version, flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_topics
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.groups import serves_share_groups
from pykafka_broker.apis.told_changes import OFFSETS, tell
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.share.events import DeletedShareTopic, DeleteShareOffsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: DeleteShareGroupOffsetsRequest, error: KafkaError) -> DeleteShareGroupOffsetsResponse:
    """The answer to a request that failed as a whole."""
    return _refused(error.code, error.message)


def _refused(error: ErrorCode, message: str | None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=int(error), error_message=message, responses=[])


@handles(
    DeleteShareGroupOffsetsRequest,
    versions="0",
    needs=[
        on_groups(AclOperation.DELETE).asked_by_handler(),
        on_topics(AclOperation.READ).asked_by_handler(),
    ],
    error_response=failed,
)
async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, ctx: RequestContext
) -> DeleteShareGroupOffsetsResponse:
    """Topics that the client may not read are refused one by one, and come first; the coordinator decides on
    the rest.
    """
    if not serves_share_groups(ctx):
        return failed(request, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
    if denied_groups(ctx, AclOperation.DELETE, (request.group_id,)):
        return failed(request, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    if not request.group_id:
        return failed(request, KafkaError(ErrorCode.INVALID_GROUP_ID))
    names = [topic.topic_name for topic in request.topics]
    hidden = denied_topics(ctx, AclOperation.READ, names)
    groups = ctx.node.groups
    visible = tuple(name for name in names if name not in hidden)
    result = await groups.answer(
        request.group_id,
        lambda token: DeleteShareOffsets(token, groups.now_ms(), request.group_id, visible),
        refused=refusals.delete_share_offsets,
    )
    if result.error is not ErrorCode.NONE:
        return _refused(result.error, result.error_message)
    gone = (each.topic or "" for each in result.topics if not each.error)
    tell(ctx, OFFSETS, f"Deleted share offsets of group {request.group_id} of topics: ", gone)
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    denied = (
        DeletedShareTopic(name, error=error, error_message=error.message) for name in names if name in hidden
    )
    return DeleteShareGroupOffsetsResponse(
        error_code=0,
        responses=[
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=each.topic or "",
                topic_id=each.topic_id,
                error_code=int(each.error),
                error_message=each.error_message,
            )
            for each in (*denied, *result.topics)
        ],
    )
