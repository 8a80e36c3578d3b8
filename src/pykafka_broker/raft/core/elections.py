"""Elections: how a voter grants votes and asks for them (Vote, with the pre-vote of KIP-996).

A vote is on disk before it is granted. A pre-vote promises nothing and writes nothing: it finds out whether
an election would succeed, so that a voter that has only lost its own connection disturbs no leader.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.common import heard_from, names_this_replica, voter_request_error
from pykafka_broker.raft.core.messages import Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey, is_majority
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Prospective, Unattached
from pykafka_broker.raft.core.turn import Turn


def on_vote(turn: Turn, token: int, request: Vote) -> None:
    """A replica asks for a vote."""
    error = _vote_error(turn, request)
    if error is ErrorCode.NONE and request.epoch > turn.epoch:
        turn.become_unattached(request.epoch)
    if error is ErrorCode.NONE and not names_this_replica(turn, request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    granted = error is ErrorCode.NONE and grants_vote(turn, request)
    if granted and not request.pre_vote:
        _keep_vote(turn, request.candidate)
    if error is ErrorCode.NONE and request.pre_vote and not granted:
        _ask_again(turn, request.candidate.node_id)
    turn.answer(token, VoteAnswer(error, turn.current, granted))


def _vote_error(turn: Turn, request: Vote) -> ErrorCode:
    newest = request.epoch if request.pre_vote else request.epoch - 1
    if request.end_offset < 0 or not 0 <= request.last_epoch <= newest:
        return ErrorCode.INVALID_REQUEST
    return voter_request_error(turn, request.candidate.node_id, request.epoch)


def grants_vote(turn: Turn, request: Vote) -> bool:
    """Whether this replica gives its vote, or its pre-vote, for a valid request."""
    role = turn.role
    if isinstance(role, Leader) or not is_up_to_date(turn, request):
        return False
    if request.pre_vote:
        # An observer also refuses only until the time-out: other replicas may already know it as a voter, and
        # need its vote.
        return not (isinstance(role, Follower) and role.hears_leader(turn.now_ms))
    if not isinstance(role, (Unattached, Prospective)):
        return False
    if role.voted is not None:
        return role.voted.matches(request.candidate)
    return role.leader_id is None


def is_up_to_date(turn: Turn, request: Vote) -> bool:
    """Whether the candidate's log is at least as long as this one, by last epoch and end offset."""
    return (request.last_epoch, request.end_offset) >= (turn.log.last_epoch, turn.log.end_offset)


def _keep_vote(turn: Turn, candidate: ReplicaKey) -> None:
    role = turn.role
    if not isinstance(role, (Unattached, Prospective)) or role.voted is not None:
        return
    if isinstance(role, Prospective):
        turn.role = role._replace(voted=candidate)
        return
    deadline_ms = None if role.election_deadline_ms is None else turn.next_election_ms()
    turn.role = role._replace(voted=candidate, election_deadline_ms=deadline_ms)


def _ask_again(turn: Turn, node_id: int) -> None:
    """Ask a voter for its pre-vote again: it refused, but has lost its leader since, and its log is behind.

    A voter whose log is not behind is not asked again: both would start elections.
    """
    role = turn.role
    if isinstance(role, Prospective) and node_id in role.refused:
        turn.role = role._replace(refused=role.refused - {node_id})


# -- asking for votes --------------------------------------------------------------------------------------


def stand(turn: Turn) -> None:
    """Start an election with pre-votes. A quorum of one has no other voter to ask."""
    turn.become_prospective()
    _count(turn)


def on_vote_answer(turn: Turn, node_id: int, answer: VoteAnswer) -> bool:
    """A voter answers; return whether it may be asked again at once."""
    handled = heard_from(turn, answer.error, answer.current)
    if handled is not None:
        return handled
    role = turn.role
    if answer.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(role, Prospective):
        # The voter lacks KIP-996, so the election goes on without pre-votes.
        turn.become_candidate()
        _count(turn)
        return True
    if answer.error is not ErrorCode.NONE:
        return False
    if isinstance(role, (Prospective, Candidate)):
        if answer.granted:
            turn.role = role._replace(granted=role.granted | {node_id}, refused=role.refused - {node_id})
        else:
            turn.role = role._replace(refused=role.refused | {node_id}, granted=role.granted - {node_id})
        _count(turn)
    return True


def _count(turn: Turn) -> None:
    """Change the role if the votes decide. The voters may have changed since they were asked."""
    voters = turn.voters.voters
    role = turn.role
    if isinstance(role, Prospective):
        if is_majority(len(role.granted & voters.keys()), len(voters)):
            turn.become_candidate()
            _count(turn)
        elif is_lost(turn, role):
            _give_up(turn, role)
    elif isinstance(role, Candidate) and is_majority(len(role.granted & voters.keys()), len(voters)):
        turn.become_leader()


def is_lost(turn: Turn, role: Union[Prospective, Candidate]) -> bool:
    """Whether the voters that have not refused are no majority."""
    voters = turn.voters.voters
    return not is_majority(len(voters.keys() - role.refused), len(voters))


def is_void(turn: Turn, role: Candidate) -> bool:
    """Whether the votes are split, so that no candidate can win the epoch.

    The candidate need not wait for another leader then. Voters whose processes have ended count for no
    candidate; if one voted before it ended, pre-votes protect the leader that it elected.
    """
    voters = turn.voters.voters
    there = voters.keys() - turn.gone
    own, of_others = len(there - role.refused), len(there - role.granted)
    return not is_majority(own, len(voters)) and not is_majority(of_others, len(voters))


def _give_up(turn: Turn, role: Prospective) -> None:
    """Return to the leader known before, if any: a majority has refused pre-votes, or the time is over."""
    if role.leader_id is not None and role.endpoints:
        turn.become_follower(role.epoch, role.leader_id, role.endpoints, role.fetch_deadline_ms)
    else:
        turn.become_unattached(role.epoch)


def poll_prospective(turn: Turn, role: Prospective) -> None:
    """Ask for pre-votes until the votes or the timer decide."""
    if not turn.stopping and turn.has_reached(role.election_deadline_ms):
        _give_up(turn, role)
    else:
        _ask_for_votes(turn, role, role.epoch, pre_vote=True)


def poll_candidate(turn: Turn, role: Candidate) -> None:
    """Ask for votes until they or the timer decide."""
    if is_void(turn, role):
        deadline_ms = min(role.election_deadline_ms, turn.election_in_order_ms())
        role = turn.role = role._replace(election_deadline_ms=deadline_ms)
    if not turn.stopping and turn.has_reached(role.election_deadline_ms):
        stand(turn)
    elif not is_lost(turn, role):
        _ask_for_votes(turn, role, role.epoch, pre_vote=False)


def _ask_for_votes(turn: Turn, role: Union[Prospective, Candidate], epoch: int, *, pre_vote: bool) -> None:
    log = turn.log
    for voter in turn.voters.others(turn.node_id):
        if voter.key.node_id not in role.granted | role.refused:
            request = Vote(epoch, turn.local.key, voter.key, log.last_epoch, log.end_offset, pre_vote)
            turn.ask_voter(voter.key.node_id, request)
