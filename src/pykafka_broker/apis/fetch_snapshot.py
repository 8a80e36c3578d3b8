"""FetchSnapshot (API key 59): a replica whose next records were deleted copies a snapshot, part by part.

v1 has the directory of the replica, and endpoints (KIP-853).
`raft/core` decides, `raft/wire/fetch_snapshot.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from pykafka_broker.raft.core.messages import FetchSnapshotAnswer
from pykafka_broker.raft.wire import fetch_snapshot as wire
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    FetchSnapshotRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def fetch_snapshot(request: FetchSnapshotRequest, ctx: ControllerContext) -> FetchSnapshotResponse:
    """The next part of the file."""
    scope = Scope(ctx.node.metadata.image.cluster_id, ctx.connection.listener_name)
    asked = wire.read_request(request, scope)
    if isinstance(asked, FetchSnapshotResponse):
        return asked
    answer = await ctx.node.quorum.request(asked)
    data = b""
    if answer.error is ErrorCode.NONE and answer.snapshot_id is not None:
        try:
            data = await ctx.node.quorum.read_snapshot(answer.snapshot_id, answer.position, answer.max_bytes)
        except FileNotFoundError:  # removed since the core knew of it
            answer = FetchSnapshotAnswer(ErrorCode.SNAPSHOT_NOT_FOUND, answer.current)
    return wire.response(answer, scope, data)
