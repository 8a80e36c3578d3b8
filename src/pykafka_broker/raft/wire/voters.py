"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter (API keys 80 to 82): changes of the voters (KIP-853)."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, error_of
from pykafka_broker.protocol.messages import add_raft_voter as add
from pykafka_broker.protocol.messages import remove_raft_voter as remove
from pykafka_broker.protocol.messages import update_raft_voter as update
from pykafka_broker.raft.core.messages import (
    Acknowledged,
    AddVoter,
    ChangeAnswer,
    Current,
    RemoveVoter,
    UpdateVoter,
)
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import MalformedAnswer, Scope

# -- AddRaftVoter ------------------------------------------------------------------------------------------


def add_request(asked: AddVoter, scope: Scope) -> add.AddRaftVoterRequest:
    """The request to make a copy of the log a voter."""
    return add.AddRaftVoterRequest(
        cluster_id=scope.cluster_id,
        timeout_ms=asked.timeout_ms,
        voter_id=asked.key.node_id,
        voter_directory_id=asked.key.directory_id,
        listeners=[
            add.Listener(name=name, host=host, port=port) for name, (host, port) in asked.endpoints.items()
        ],
        ack_when_committed=asked.ack_when_committed,
    )


def read_add_request(
    request: add.AddRaftVoterRequest, cluster_id: str
) -> Union[AddVoter, add.AddRaftVoterResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    if request.cluster_id not in (None, cluster_id):
        return add.AddRaftVoterResponse(
            error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID),
            error_message=_other_cluster(request.cluster_id, cluster_id),
        )
    return AddVoter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        common.endpoints_of(request.listeners),
        request.timeout_ms,
        request.ack_when_committed,
    )


def _other_cluster(asked: str | None, cluster_id: str) -> str:
    return f'The given id "{asked}" doesn\'t match the cluster id "{cluster_id}"'


def add_response(answer: ChangeAnswer) -> add.AddRaftVoterResponse:
    """The answer of the leader."""
    return add.AddRaftVoterResponse(error_code=int(answer.error), error_message=answer.message)


def read_change_response(
    response: Union[add.AddRaftVoterResponse, remove.RemoveRaftVoterResponse],
) -> ChangeAnswer:
    """The answer as the core takes it."""
    return ChangeAnswer(error_of(response.error_code), response.error_message)


# -- RemoveRaftVoter ---------------------------------------------------------------------------------------


def remove_request(asked: RemoveVoter, scope: Scope) -> remove.RemoveRaftVoterRequest:
    """The request to take a voter out of the quorum."""
    return remove.RemoveRaftVoterRequest(
        cluster_id=scope.cluster_id,
        voter_id=asked.key.node_id,
        voter_directory_id=asked.key.directory_id,
    )


def read_remove_request(
    request: remove.RemoveRaftVoterRequest, cluster_id: str
) -> Union[RemoveVoter, remove.RemoveRaftVoterResponse]:
    """The request as the core takes it, or the answer that refuses it as a whole."""
    if request.cluster_id not in (None, cluster_id):
        return remove.RemoveRaftVoterResponse(
            error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID),
            error_message=_other_cluster(request.cluster_id, cluster_id),
        )
    return RemoveVoter(ReplicaKey(request.voter_id, request.voter_directory_id))


def remove_response(answer: ChangeAnswer) -> remove.RemoveRaftVoterResponse:
    """The answer of the leader."""
    return remove.RemoveRaftVoterResponse(error_code=int(answer.error), error_message=answer.message)


# -- UpdateRaftVoter ---------------------------------------------------------------------------------------


def update_request(asked: UpdateVoter, scope: Scope) -> update.UpdateRaftVoterRequest:
    """The request of a voter whose entry is out of date."""
    key, endpoints, (least, greatest) = asked.voter
    return update.UpdateRaftVoterRequest(
        cluster_id=scope.cluster_id,
        current_leader_epoch=asked.epoch,
        voter_id=key.node_id,
        voter_directory_id=key.directory_id,
        listeners=[
            update.Listener(name=name, host=host, port=port) for name, (host, port) in endpoints.items()
        ],
        kraft_version_feature=update.KRaftVersionFeature(
            min_supported_version=least, max_supported_version=greatest
        ),
    )


def read_update_request(
    request: update.UpdateRaftVoterRequest, scope: Scope, current: Current
) -> Union[UpdateVoter, update.UpdateRaftVoterResponse]:
    """The request as the core takes it, or the answer, with `current`, that refuses it as a whole."""
    if request.cluster_id not in (None, scope.cluster_id):
        return update_response(Acknowledged(ErrorCode.INCONSISTENT_CLUSTER_ID, current), scope)
    levels = request.kraft_version_feature
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        common.endpoints_of(request.listeners),
        (levels.min_supported_version, levels.max_supported_version),
    )
    return UpdateVoter(request.current_leader_epoch, voter)


def update_response(answer: Acknowledged, scope: Scope) -> update.UpdateRaftVoterResponse:
    """The answer of the leader."""
    current = answer.current
    leader = update.CurrentLeader(
        leader_id=common.told_leader(current), leader_epoch=current.epoch, host="", port=0
    )
    if current.leader_id is not None and scope.listener in current.endpoints:
        leader.host, leader.port = current.endpoints[scope.listener]
    return update.UpdateRaftVoterResponse(error_code=int(answer.error), current_leader=leader)


def read_update_response(response: update.UpdateRaftVoterResponse, scope: Scope) -> Acknowledged:
    """The answer as the core takes it.

    Raises:
        MalformedAnswer: the response is unusable.
    """
    leader = response.current_leader
    if leader is None:
        raise MalformedAnswer(f"UpdateRaftVoter was refused: {error_of(response.error_code).name}")
    endpoints = {scope.listener: (leader.host, leader.port)} if leader.host else {}
    current = Current(leader.leader_epoch, common.optional_id(leader.leader_id), endpoints)
    return Acknowledged(error_of(response.error_code), current)
