"""Vote (API key 52): a replica asks for a vote (KIP-595), or whether it would get one (KIP-996).

v1 names the voter (KIP-853), v2 pre-votes.
`raft/core` decides, `raft/wire/vote.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.messages.vote import VoteRequest, VoteResponse
from pykafka_broker.raft.wire import vote as wire
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    VoteRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def vote(request: VoteRequest, ctx: ControllerContext) -> VoteResponse:
    """The answer of this replica, once its state is on disk."""
    scope = Scope(ctx.node.metadata.image.cluster_id, ctx.connection.listener_name)
    asked = wire.read_request(request, scope)
    if isinstance(asked, VoteResponse):
        return asked
    return wire.response(await ctx.node.quorum.request(asked), scope)
