"""RemoveRaftVoter (API key 81): remove a voter from the quorum (KIP-853).

v0 is the only version.
`raft/core` decides, `raft/wire/remove_raft_voter.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import VOTERS_REMOVED, tell
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from pykafka_broker.raft.wire import remove_raft_voter as wire

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


@handles(
    RemoveRaftVoterRequest,
    versions="0",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=wire.refused,
    forwarded=True,
)
async def remove_raft_voter(
    request: RemoveRaftVoterRequest, ctx: AdministrationContext
) -> RemoveRaftVoterResponse:
    """The answer of the leader."""
    asked = wire.read_request(request, ctx.node.metadata.image.cluster_id)
    if isinstance(asked, RemoveRaftVoterResponse):
        return asked
    try:
        answer = await ctx.node.controller.change_voters(asked)
    except KafkaError as error:
        if error.code is not ErrorCode.NOT_CONTROLLER:
            raise
        return wire.refused(request, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, ""))
    if answer.error is ErrorCode.NONE:
        tell(ctx, VOTERS_REMOVED, f"Removed voter {asked.key.node_id} of the metadata quorum")
    return wire.response(answer)
