"""UpdateRaftVoter (API key 82): a voter's endpoints or versions differ from its entry (KIP-853).

v0 is the only version.
`raft/core` decides, `raft/wire/update_raft_voter.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import VOTERS_UPDATED, tell
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from pykafka_broker.raft.wire import update_raft_voter as wire
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    UpdateRaftVoterRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def update_raft_voter(
    request: UpdateRaftVoterRequest, ctx: ControllerContext
) -> UpdateRaftVoterResponse:
    """The answer comes as soon as the leader has appended the new entry."""
    scope = Scope(ctx.node.metadata.image.cluster_id, ctx.connection.listener_name)
    asked = wire.read_request(request, scope, ctx.node.quorum.current)
    if isinstance(asked, UpdateRaftVoterResponse):
        return asked
    answer = await ctx.node.quorum.request(asked)
    if answer.error is ErrorCode.NONE:
        tell(ctx, VOTERS_UPDATED, f"Updated voter {asked.voter.key.node_id} of the metadata quorum")
    return wire.response(answer, scope)
