"""Common to the RPCs: the checks of epochs and voters, and the leader that an answer names."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import Current
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.turn import Turn


def voter_request_error(turn: Turn, sender_id: int, epoch: int) -> ErrorCode:
    """The error of a request that any voter serves: Vote, BeginQuorumEpoch, EndQuorumEpoch."""
    if epoch < turn.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def leader_request_error(turn: Turn, epoch: int) -> ErrorCode:
    """The error of a request that only the leader of its epoch serves."""
    if epoch < turn.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > turn.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(turn.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if turn.stopping:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return ErrorCode.NONE


def names_this_replica(turn: Turn, voter: ReplicaKey | None) -> bool:
    """Whether a request is for this copy of the log; without a voter it is for any copy."""
    return voter is None or voter.matches(turn.local.key)


def follow(turn: Turn, epoch: int, leader_id: int | None, endpoints: Endpoints) -> bool:
    """Take over the leader of `epoch` from a peer; return False if that contradicts what this replica knows.

    `epoch` is not older than this replica's. A contradiction is a second leader of one epoch, or this replica
    as the leader of an epoch that it does not lead. It ends Apache Kafka's process; here it is ignored.
    """
    if leader_id is None:
        if epoch > turn.epoch:
            turn.become_unattached(epoch)
        return True
    if leader_id == turn.node_id:
        if epoch > turn.epoch:
            # This node led the epoch before it lost its disk.
            turn.become_unattached(epoch, leader_id)
        return turn.leader_id == leader_id
    endpoints = endpoints or turn.voters.endpoints_of(leader_id)
    known = turn.leader_id if epoch == turn.epoch else None
    if known not in (None, leader_id):
        return False
    if not endpoints.get(turn.settings.listener):
        if epoch > turn.epoch:
            turn.become_unattached(epoch, leader_id)
        return True
    if known is None or len(endpoints) > len(turn.leader_endpoints):
        turn.become_follower(epoch, leader_id, endpoints)
    return True


def heard_from(turn: Turn, error: ErrorCode, current: Current) -> bool | None:
    """Take over the epoch and the leader of an answer.

    Returns None if the caller must handle the rest of the answer. Otherwise the answer is settled; True if
    the replica may be asked again at once, because something has changed.
    """
    epoch, leader_id, endpoints = current
    if epoch < turn.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return False
    if epoch > turn.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        before = turn.epoch, turn.leader_id
        return follow(turn, epoch, leader_id, endpoints) and before != (turn.epoch, turn.leader_id)
    if leader_id is not None and not turn.leader_endpoints:
        if not follow(turn, epoch, leader_id, endpoints):
            return False
        return None if error is ErrorCode.NONE else True
    if error in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_VOTER_KEY):
        return False
    return None
