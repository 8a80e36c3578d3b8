"""Heartbeat (API key 12): a member of a classic group is alive; during a rebalance it is told to rejoin.

v3 static members, v4 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_group_of_request
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    """The answer to a request that failed as a whole."""
    return HeartbeatResponse(error_code=int(error.code))


@handles(
    HeartbeatRequest,
    versions="0-4",
    needs=[on_group_of_request(AclOperation.READ)],
    error_response=failed,
)
async def heartbeat(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Extend the member's session."""
    groups = ctx.node.groups
    error = await groups.answer_named(
        request.group_id,
        lambda token: events.Heartbeat(
            token,
            groups.now_ms(),
            request.group_id,
            request.member_id,
            request.generation_id,
            request.group_instance_id,
        ),
        refused=refusals.heartbeat,
    )
    return HeartbeatResponse(error_code=int(error))
