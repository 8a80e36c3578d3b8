"""SyncGroup (API key 14): the leader of a generation sends the assignment, each member gets its part.

v3 static members, v4 flexible, v5 protocol type and name, which must match the generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups
from pykafka_broker.apis.needs import on_groups
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

FIRST_VERSION_WITH_PROTOCOL = 5


def failed(_request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    """The answer to a request that failed as a whole."""
    return SyncGroupResponse(error_code=int(error.code), assignment=b"")


@handles(
    SyncGroupRequest,
    versions="0-5",
    needs=[on_groups(AclOperation.READ).asked_by_handler()],
    error_response=failed,
)
async def sync_group(request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse:
    """Members wait until the leader has sent the assignment."""
    if ctx.version >= FIRST_VERSION_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return _response(events.SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if denied_groups(ctx, AclOperation.READ, (request.group_id,)):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = ctx.node.groups
    assignments = tuple((given.member_id, bytes(given.assignment)) for given in request.assignments)
    result = await groups.answer_named(
        request.group_id,
        lambda token: events.SyncGroup(
            token=token,
            now_ms=groups.now_ms(),
            group_id=request.group_id,
            member_id=request.member_id,
            generation=request.generation_id,
            assignments=assignments,
            group_instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
        ),
        refused=refusals.sync,
    )
    return _response(result)


def _response(result: events.SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=int(result.error),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
