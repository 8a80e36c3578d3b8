"""What the RPCs have in common: whose epoch counts, who is meant, and what an answer tells of the leader."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import Current
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.turn import Turn


def voter_request_error(turn: Turn, sender_id: int, epoch: int) -> ErrorCode:
    """What refuses a request that any voter serves: Vote, BeginQuorumEpoch, EndQuorumEpoch."""
    if epoch < turn.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def leader_request_error(turn: Turn, epoch: int) -> ErrorCode:
    """What refuses a request that only the leader of its epoch serves."""
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
    """Whether a request that names the copy it means, means this one."""
    return voter is None or voter.matches(turn.local.key)


def follow(turn: Turn, epoch: int, leader_id: int | None, endpoints: Endpoints) -> bool:
    """Take over what a peer knows of an epoch, which is not older; return False if that is a contradiction.

    Apache Kafka's process ends on a contradiction: two leaders of one epoch, or this replica named the leader
    of an epoch that it does not lead. Here the peer is not believed.
    """
    if leader_id is None:
        if epoch > turn.epoch:
            turn.become_unattached(epoch)
        return True
    if leader_id == turn.node_id:
        if epoch > turn.epoch:
            # Led by this node before it lost its disk.
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
    """Take over what an answer tells of the epoch and its leader.

    None: the answer itself is still to be looked at. Else it means nothing more, and the value tells whether
    that replica may be asked again at once: only when something has changed, or it would be asked for ever.
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
