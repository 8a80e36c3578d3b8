"""BeginQuorumEpoch (API key 53): a new leader of the quorum announces itself.

v1 the leader's endpoints (KIP-853).
`raft/core` decides, `raft/wire/begin_quorum_epoch.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from pykafka_broker.raft.wire import begin_quorum_epoch as wire
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    BeginQuorumEpochRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def begin_quorum_epoch(
    request: BeginQuorumEpochRequest, ctx: ControllerContext
) -> BeginQuorumEpochResponse:
    """The answer of this replica, once its state is on disk."""
    scope = Scope(ctx.node.metadata.image.cluster_id, ctx.connection.listener_name)
    asked = wire.read_request(request, scope)
    if isinstance(asked, BeginQuorumEpochResponse):
        return asked
    return wire.response(await ctx.node.quorum.request(asked), scope)
