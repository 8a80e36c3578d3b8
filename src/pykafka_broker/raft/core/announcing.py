"""BeginQuorumEpoch and EndQuorumEpoch: a leader announces its epoch, and that it has resigned.

Followers fetch, so a new leader has no other way to be found quickly. A leader that stops cleanly hands over
to the voter with the longest log within a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.common import follow, heard_from, names_this_replica, voter_request_error
from pykafka_broker.raft.core.messages import Acknowledged, BeginQuorumEpoch, EndQuorumEpoch
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.roles import Follower, Leader, Resigned
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.turn import Turn


def on_begin_quorum_epoch(turn: Turn, token: int, request: BeginQuorumEpoch) -> None:
    """A leader announces its epoch."""
    error = _learn_leader(turn, request)
    if error is ErrorCode.NONE and not names_this_replica(turn, request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    turn.acknowledge(token, error)


def on_end_quorum_epoch(turn: Turn, token: int, request: EndQuorumEpoch) -> None:
    """The leader has resigned: its first successor starts an election at once, the others later."""
    error = _learn_leader(turn, request)
    role = turn.role
    if error is ErrorCode.NONE and isinstance(role, Follower) and role.leader_id == request.leader_id:
        backoff_ms = successor_backoff_ms(turn.settings, turn.local.key, request.successors)
        # The leader is known to be gone, so any replica may have this one's pre-vote.
        deadline_ms = turn.now_ms + backoff_ms
        turn.role = role._replace(
            fetch_deadline_ms=deadline_ms, election_deadline_ms=deadline_ms, has_fetched=False
        )
    turn.acknowledge(token, error)


def _learn_leader(turn: Turn, request: BeginQuorumEpoch | EndQuorumEpoch) -> ErrorCode:
    error = voter_request_error(turn, request.leader_id, request.epoch)
    if error is not ErrorCode.NONE:
        return error
    if follow(turn, request.epoch, request.leader_id, request.endpoints):
        return ErrorCode.NONE
    # An INVALID_REQUEST would end Apache Kafka's process.
    return ErrorCode.UNKNOWN_SERVER_ERROR


def successor_backoff_ms(settings: Settings, local: ReplicaKey, successors: Sequence[ReplicaKey]) -> int:
    """How long a replica waits before its election: longer for later successors, longest for others."""
    longest_ms = settings.election_backoff_max_ms
    for place, successor in enumerate(successors):
        if successor.matches(local):
            if place == 0:
                return 0
            return min(longest_ms, (longest_ms >> (len(successors) - 1)) << (place - 1))
    return longest_ms


def announce(turn: Turn, role: Leader) -> None:
    """Send BeginQuorumEpoch to the other voters again, if it is time."""
    if turn.has_reached(role.begin_epoch_deadline_ms):
        for voter in turn.voters.others(turn.node_id):
            request = BeginQuorumEpoch(role.epoch, turn.node_id, turn.local.endpoints, voter.key)
            turn.ask_voter(voter.key.node_id, request)
        deadline_ms = turn.now_ms + turn.settings.begin_epoch_interval_ms
        turn.role = role._replace(begin_epoch_deadline_ms=deadline_ms)


def on_begin_answer(turn: Turn, answer: Acknowledged) -> bool:
    """A voter has answered BeginQuorumEpoch; return whether it may be asked again at once."""
    handled = heard_from(turn, answer.error, answer.current)
    return answer.error is ErrorCode.NONE if handled is None else handled


def poll_resigned(turn: Turn, role: Resigned) -> None:
    """Send EndQuorumEpoch until all voters know it, or the election timer has run out."""
    if not turn.stopping and turn.has_reached(role.election_deadline_ms):
        turn.become_unattached(role.epoch + 1)
        return
    for node_id in sorted(role.unaware):
        request = EndQuorumEpoch(role.epoch, turn.node_id, turn.local.endpoints, role.successors)
        turn.ask_voter(node_id, request)


def on_end_answer(turn: Turn, node_id: int, answer: Acknowledged) -> bool:
    """A voter has answered EndQuorumEpoch; return whether it may be asked again at once."""
    handled = heard_from(turn, answer.error, answer.current)
    if handled is not None:
        return handled
    role = turn.role
    if answer.error is ErrorCode.NONE and isinstance(role, Resigned):
        turn.role = role._replace(unaware=role.unaware - {node_id})
        return True
    return answer.error is ErrorCode.NONE
