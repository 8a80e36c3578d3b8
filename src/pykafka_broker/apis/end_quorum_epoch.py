"""EndQuorumEpoch (API key 54): a leader of the quorum has resigned.

v1 the directories of its successors and its endpoints (KIP-853).
`raft/core` decides, `raft/wire/end_quorum_epoch.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from pykafka_broker.raft.wire import end_quorum_epoch as wire
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    EndQuorumEpochRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def end_quorum_epoch(request: EndQuorumEpochRequest, ctx: ControllerContext) -> EndQuorumEpochResponse:
    """The answer of this replica, once its state is on disk."""
    scope = Scope(ctx.node.metadata.image.cluster_id, ctx.connection.listener_name)
    asked = wire.read_request(request, scope)
    if isinstance(asked, EndQuorumEpochResponse):
        return asked
    return wire.response(await ctx.node.quorum.request(asked), scope)
