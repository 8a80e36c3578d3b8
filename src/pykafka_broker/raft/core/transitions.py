"""KRaft as a pure machine: the next state of a replica, and the steps its driver must then take, in order.

`boot` finds the role a replica wakes up in; `step` takes one event. Both return a `RaftStep`, whose fields
stand in the order of the driver's duties: persist, append, advance. A quorum of one elects itself within
`boot`; the events of a real quorum (votes, fetches, time-outs) will be further cases of `step`, and messages
to send a further field.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.quorum import (
    UNKNOWN_DIRECTORY,
    ReplicaKey,
    Voter,
    VoterSet,
    is_majority,
    majority_offset,
)
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Resigned, Role, Unattached
from pykafka_broker.system.named_tuple import NamedTuple


class ElectionState(NamedTuple):
    """The `quorum-state` file: without it a replica could vote twice, or lead an epoch twice."""

    leader_epoch: int = 0
    leader_id: int = -1
    voted_id: int = -1
    voted_directory_id: bytes = UNKNOWN_DIRECTORY


class LogView(NamedTuple):
    """The facts of the log that the machine decides on. `voters` are the newest, committed or not."""

    end_offset: int
    last_epoch: int
    voters: VoterSet
    #: False while the voters stand only in the bootstrap snapshot, which other replicas never see.
    voters_in_log: bool
    #: 0: the voters are those of the configuration (`controller.quorum.voters`), and never stand in the log.
    kraft_version: int = 1


class RaftState(NamedTuple):
    """One replica."""

    local: Voter
    role: Role
    log: LogView


class RaftStep(NamedTuple):
    """The next state, and the actions of the driver in this order; a replica must stop if one of them fails.

    persist   write the election state, synced, before anything below
    append    one control batch in the epoch of the state's role, before any other record of that epoch
    advance   everything below this offset is committed: apply it, then answer the requests that wait for it
    """

    state: RaftState
    persist: ElectionState | None = None
    append: tuple[object, ...] = ()
    advance: int | None = None


class Appended(NamedTuple):
    """The leader's log now ends at `end_offset`, in memory or on disk."""

    end_offset: int


class Flushed(NamedTuple):
    """Everything below `end_offset` of the own log is on disk."""

    end_offset: int


Event = Union[Appended, Flushed]


def boot(local: Voter, election: ElectionState, log: LogView) -> RaftStep:
    """Start in the state that the files describe."""
    role = _boot_role(local, election, log)
    state = RaftState(local, role, log)
    if log.voters.is_only_voter(local.key):
        return _become_leader(state, _candidate(state))
    return RaftStep(state)


def _boot_role(local: Voter, election: ElectionState, log: LogView) -> Role:
    epoch = election.leader_epoch
    if epoch < log.last_epoch:
        return Unattached(log.last_epoch)
    if election.leader_id == local.key.node_id:
        return Resigned(epoch)
    if election.leader_id >= 0:
        known = election.leader_id in log.voters.voters
        return Follower(epoch, election.leader_id) if known else Unattached(epoch, election.leader_id)
    if election.voted_id >= 0:
        voted = ReplicaKey(election.voted_id, election.voted_directory_id)
        if voted == local.key:
            return Candidate(epoch, frozenset({local.key.node_id}))
        return Unattached(epoch, voted=voted)
    return Unattached(epoch)


def _candidate(state: RaftState) -> Candidate:
    """A new candidacy is a new epoch, except for a replica that was a candidate when it stopped."""
    if isinstance(state.role, Candidate):
        return state.role
    return Candidate(state.role.epoch + 1, frozenset({state.local.key.node_id}))


def _become_leader(state: RaftState, candidate: Candidate) -> RaftStep:
    log = state.log
    granted, voting = len(candidate.granted), len(log.voters.voters)
    if not is_majority(granted, voting):
        raise IllegalState(f"{granted} of {voting} voters are no majority: {candidate} does not lead")
    voters = _with_own_entry(state) if log.kraft_version else log.voters
    role = Leader(candidate.epoch, log.end_offset, dict.fromkeys(voters.voters, -1))
    election = ElectionState(candidate.epoch, state.local.key.node_id)
    change = m.LeaderChangeMessage(
        version=0,
        leader_id=state.local.key.node_id,
        voters=[m.LeaderChangeMessageVoter(voter_id=voter) for voter in voters.voters],
        granting_voters=[m.LeaderChangeMessageVoter(voter_id=voter) for voter in sorted(candidate.granted)],
    )
    append: tuple[object, ...] = (change,)
    if log.kraft_version and (not log.voters_in_log or voters != log.voters):
        append = (change, m.KRaftVersionRecord(version=0, kraft_version=1), voters.to_record())
    log = log._replace(voters=voters, voters_in_log=log.kraft_version > 0)
    return RaftStep(state._replace(role=role, log=log), persist=election, append=append)


def _with_own_entry(state: RaftState) -> VoterSet:
    """The voters with this replica's own entry as it is today: it may have moved to another address."""
    voters = dict(state.log.voters.voters)
    voters[state.local.key.node_id] = state.local
    return VoterSet(voters)


def step(state: RaftState, event: Event) -> RaftStep:
    """Take one event."""
    match event:
        case Appended(end_offset):
            return RaftStep(state._replace(log=state.log._replace(end_offset=end_offset)))
        case Flushed(end_offset):
            return _flushed(state, end_offset)


def _flushed(state: RaftState, end_offset: int) -> RaftStep:
    role = state.role
    if not isinstance(role, Leader):
        return RaftStep(state)
    role = role._replace(end_offsets={**role.end_offsets, state.local.key.node_id: end_offset})
    reached = majority_offset(role.end_offsets.values())
    if reached <= role.start_offset or reached <= (role.high_watermark or 0):
        return RaftStep(state._replace(role=role))
    role = role._replace(high_watermark=reached)
    return RaftStep(state._replace(role=role), advance=reached)
