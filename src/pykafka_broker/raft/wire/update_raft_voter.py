"""UpdateRaftVoter (API key 82): correct the entry of a voter (KIP-853). Version 0 is the only one."""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import update_raft_voter as m
from pykafka_broker.raft.core.messages import Acknowledged, Current, UpdateVoter
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.wire import common
from pykafka_broker.raft.wire.common import MalformedAnswer, Scope


def request(asked: UpdateVoter, scope: Scope) -> m.UpdateRaftVoterRequest:
    """The request of a voter whose entry is out of date."""
    key, endpoints, (least, greatest) = asked.voter
    return m.UpdateRaftVoterRequest(
        cluster_id=scope.cluster_id,
        current_leader_epoch=asked.epoch,
        voter_id=key.node_id,
        voter_directory_id=key.directory_id,
        listeners=[m.Listener(name=name, host=host, port=port) for name, (host, port) in endpoints.items()],
        kraft_version_feature=m.KRaftVersionFeature(
            min_supported_version=least, max_supported_version=greatest
        ),
    )


def read_request(
    request: m.UpdateRaftVoterRequest, scope: Scope, current: Current
) -> Union[UpdateVoter, m.UpdateRaftVoterResponse]:
    """The request as the core takes it, or the answer, with `current`, that refuses it as a whole."""
    if request.cluster_id not in (None, scope.cluster_id):
        return response(Acknowledged(ErrorCode.INCONSISTENT_CLUSTER_ID, current), scope)
    levels = request.kraft_version_feature
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        common.endpoints_of(request.listeners),
        (levels.min_supported_version, levels.max_supported_version),
    )
    return UpdateVoter(request.current_leader_epoch, voter)


def response(answer: Acknowledged, scope: Scope) -> m.UpdateRaftVoterResponse:
    """The answer of the leader."""
    current = answer.current
    leader = m.CurrentLeader(
        leader_id=common.told_leader(current), leader_epoch=current.epoch, host="", port=0
    )
    if current.leader_id is not None and scope.listener in current.endpoints:
        leader.host, leader.port = current.endpoints[scope.listener]
    return m.UpdateRaftVoterResponse(error_code=int(answer.error), current_leader=leader)


def refused(_: m.UpdateRaftVoterRequest, error: KafkaError) -> m.UpdateRaftVoterResponse:
    """The answer that refuses a request as a whole."""
    return m.UpdateRaftVoterResponse(error_code=int(error.code))


def read_response(response: m.UpdateRaftVoterResponse, scope: Scope) -> Acknowledged:
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
