"""AddRaftVoter (API key 80): make a replica of the metadata log a voter of the quorum (KIP-853).

v1 may answer before the change is committed (KIP-1186).
`raft/core` decides, `raft/wire/add_raft_voter.py` translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import VOTERS_ADDED, tell
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from pykafka_broker.raft.wire import add_raft_voter as wire

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


@handles(
    AddRaftVoterRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=wire.refused,
    forwarded=True,
)
async def add_raft_voter(request: AddRaftVoterRequest, ctx: AdministrationContext) -> AddRaftVoterResponse:
    """The answer of the leader. The request's own timeout is ignored, as in Apache Kafka."""
    asked = wire.read_request(request, ctx.node.metadata.image.cluster_id)
    if isinstance(asked, AddRaftVoterResponse):
        return asked
    try:
        answer = await ctx.node.controller.change_voters(asked)
    except KafkaError as error:
        if error.code is not ErrorCode.NOT_CONTROLLER:
            raise
        return wire.refused(request, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, ""))
    if answer.error is ErrorCode.NONE:
        tell(ctx, VOTERS_ADDED, f"Added voter {asked.key.node_id} of the metadata quorum")
    return wire.response(answer)
