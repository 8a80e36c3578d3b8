"""AddRaftVoter (API key 80): make a replica a voter (KIP-853). v1 may be answered sooner (KIP-1186)."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import add_raft_voter as m
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import Scope


def request(asked: AddVoter, scope: Scope) -> m.AddRaftVoterRequest:
    """The request to make a copy of the log a voter."""
    return m.AddRaftVoterRequest(
        cluster_id=scope.cluster_id,
        timeout_ms=asked.timeout_ms,
        voter_id=asked.key.node_id,
        voter_directory_id=asked.key.directory_id,
        listeners=[
            m.Listener(name=name, host=host, port=port) for name, (host, port) in asked.endpoints.items()
        ],
        ack_when_committed=asked.ack_when_committed,
    )


def read_request(request: m.AddRaftVoterRequest, cluster_id: str) -> Union[AddVoter, m.AddRaftVoterResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    if request.cluster_id not in (None, cluster_id):
        text = common.other_cluster(request.cluster_id, cluster_id)
        return refused(request, KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text))
    return AddVoter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        common.endpoints_of(request.listeners),
        request.timeout_ms,
        request.ack_when_committed,
    )


def response(answer: ChangeAnswer) -> m.AddRaftVoterResponse:
    """The answer of the leader."""
    return m.AddRaftVoterResponse(error_code=int(answer.error), error_message=answer.message)


def refused(_: m.AddRaftVoterRequest, error: KafkaError) -> m.AddRaftVoterResponse:
    """The answer that refuses a request as a whole."""
    return m.AddRaftVoterResponse(error_code=int(error.code), error_message=error.message)


def read_response(response: m.AddRaftVoterResponse) -> ChangeAnswer:
    """The answer as the core takes it."""
    return ChangeAnswer(error_of(response.error_code), response.error_message)
