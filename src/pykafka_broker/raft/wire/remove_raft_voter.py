"""RemoveRaftVoter (API key 81): take a voter out of the quorum (KIP-853). Version 0 is the only one."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import remove_raft_voter as m
from pykafka_broker.raft.core.messages import ChangeAnswer, RemoveVoter
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import Scope


def request(asked: RemoveVoter, scope: Scope) -> m.RemoveRaftVoterRequest:
    """The request to take a voter out of the quorum."""
    return m.RemoveRaftVoterRequest(
        cluster_id=scope.cluster_id,
        voter_id=asked.key.node_id,
        voter_directory_id=asked.key.directory_id,
    )


def read_request(
    request: m.RemoveRaftVoterRequest, cluster_id: str
) -> Union[RemoveVoter, m.RemoveRaftVoterResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    if request.cluster_id not in (None, cluster_id):
        text = common.other_cluster(request.cluster_id, cluster_id)
        return refused(request, KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text))
    return RemoveVoter(ReplicaKey(request.voter_id, request.voter_directory_id))


def response(answer: ChangeAnswer) -> m.RemoveRaftVoterResponse:
    """The answer of the leader."""
    return m.RemoveRaftVoterResponse(error_code=int(answer.error), error_message=answer.message)


def refused(_: m.RemoveRaftVoterRequest, error: KafkaError) -> m.RemoveRaftVoterResponse:
    """The answer that refuses a request as a whole."""
    return m.RemoveRaftVoterResponse(error_code=int(error.code), error_message=error.message)


def read_response(response: m.RemoveRaftVoterResponse) -> ChangeAnswer:
    """The answer as the core takes it."""
    return ChangeAnswer(error_of(response.error_code), response.error_message)
