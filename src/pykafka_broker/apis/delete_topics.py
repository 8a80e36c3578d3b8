"""DeleteTopics (API key 20): remove topics by name, or from v6 on by id.

v1 is the first served, v4 flexible, v5 error messages, v6 topic ids (KIP-516). `delete.topic.enable=false`
refuses: TOPIC_DELETION_DISABLED from v3 on, INVALID_REQUEST before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

TOPIC_ID_VERSION = 6
NO_TOPIC_ID = bytes(16)


@handles(
    DeleteTopicsRequest,
    versions="1-6",
    needs=[on_topics(AclOperation.DESCRIBE), on_topics(AclOperation.DELETE)],
    quota=Quota.CONTROLLER_MUTATION,
)
async def delete_topics(request: DeleteTopicsRequest, ctx: RequestContext) -> DeleteTopicsResponse:
    """Each topic succeeds or fails on its own; the answer comes when it cannot be found any more."""
    wanted: list[tuple[str | None, bytes]]
    if ctx.version < TOPIC_ID_VERSION:
        wanted = [(name, NO_TOPIC_ID) for name in request.topic_names]
    else:
        wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    if not ctx.node.configs.current["delete.topic.enable"]:
        error = ErrorCode.INVALID_REQUEST if ctx.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(name=name, topic_id=topic_id, error_code=int(error))
                for name, topic_id in wanted
            ]
        )
    results = await ctx.node.controller.delete_topics(wanted, timeout_ms=request.timeout_ms)
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_code=int(result.error),
                error_message=result.message,
            )
            for result in results
        ]
    )
