"""KRaft as a pure machine: the next state of a replica, and the actions of its driver, in order.

`boot` finds the first role of a replica; `step` takes one event. Both return a `RaftStep`. An only voter
elects itself within `boot`. After every event the role checks its deadlines and sends the requests that it
can; `next_deadline_ms` says when `TimePassed` is due.

A driver carries out each step before it hands in the next event.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core import (
    announcing,
    elections,
    following,
    leading,
    snapshot_fetching,
    voter_changes,
    voter_updates,
)
from pykafka_broker.raft.core.log_view import Batch, LogView
from pykafka_broker.raft.core.messages import (
    Acknowledged,
    AddVoter,
    Answer,
    AskVersions,
    BeginQuorumEpoch,
    ChangeAnswer,
    Current,
    Destination,
    EndQuorumEpoch,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    Refused,
    RemoveVoter,
    Request,
    UpdateVoter,
    Versions,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.progress import successors
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, is_majority
from pykafka_broker.raft.core.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from pykafka_broker.raft.core.settings import DEFAULTS, Settings
from pykafka_broker.raft.core.state import (
    Answered,
    Appended,
    ElectionState,
    Event,
    Flushed,
    Moment,
    RaftState,
    RaftStep,
    Received,
    Resign,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotsChanged,
    Stop,
    TimePassed,
    Unanswered,
    UpgradeKRaftVersion,
)
from pykafka_broker.raft.core.turn import Turn


def boot(
    local: Voter, election: ElectionState, log: LogView, moment: Moment, settings: Settings = DEFAULTS
) -> RaftStep:
    """Start in the state that the files describe."""
    role = _boot_role(local, election, log, moment, settings)
    turn = Turn(RaftState(local, role, log, settings, election), moment)
    if not log.voters.is_only_voter(local.key):
        return RaftStep(turn.done().state)
    if not isinstance(role, Candidate):
        turn.become_candidate()
    turn.become_leader()
    return turn.done()


def _boot_role(
    local: Voter, election: ElectionState, log: LogView, moment: Moment, settings: Settings
) -> Role:
    epoch = election.leader_epoch
    deadline_ms = settings.election_deadline_ms(*moment)
    waits_ms = deadline_ms if log.may_stand(local.key, 0) else None
    if epoch < log.last_epoch:
        return Unattached(log.last_epoch, election_deadline_ms=waits_ms)
    if election.leader_id == local.key.node_id:
        return Resigned(epoch, election_deadline_ms=deadline_ms)
    if election.leader_id >= 0:
        return _boot_below_leader(election, log, moment, settings, waits_ms)
    if election.voted_id >= 0:
        voted = ReplicaKey(election.voted_id, election.voted_directory_id)
        if voted.matches(local.key):
            return Candidate(epoch, frozenset({local.key.node_id}), election_deadline_ms=deadline_ms)
        return Unattached(epoch, voted=voted, election_deadline_ms=waits_ms)
    return Unattached(epoch, election_deadline_ms=waits_ms)


def _boot_below_leader(
    election: ElectionState, log: LogView, moment: Moment, settings: Settings, waits_ms: int | None
) -> Role:
    epoch, leader_id = election.leader_epoch, election.leader_id
    endpoints = log.voters.endpoints_of(leader_id)
    if not endpoints:
        return Unattached(epoch, leader_id, election_deadline_ms=waits_ms)
    return Follower(
        epoch,
        leader_id,
        endpoints,
        fetch_deadline_ms=moment.now_ms + settings.fetch_timeout_ms,
        update_deadline_ms=moment.now_ms + settings.update_voter_interval_ms,
    )


def step(state: RaftState, event: Event, moment: Moment) -> RaftStep:
    """Take one event."""
    turn = Turn(state, moment)
    _take(turn, event)
    _poll_until_settled(turn)
    return turn.done()


def _take(turn: Turn, event: Event) -> None:
    match event:
        case Appended(end_offset):
            if end_offset > turn.log.end_offset:
                batch = Batch(turn.log.end_offset, end_offset, turn.epoch)
                turn.log = turn.log.appended((batch,))
        case Flushed(end_offset):
            leading.flushed(turn, end_offset)
        case Received(token, request):
            _take_request(turn, token, request)
        case Answered(node_id, request_id, answer):
            if turn.connections.expects(node_id, request_id):
                _note_presence(turn, node_id, answer)
                _end_request(turn, node_id, _take_answer(turn, node_id, answer))
        case Unanswered(node_id, request_id):
            if turn.connections.expects(node_id, request_id):
                turn.connections = turn.connections.unheard(node_id, turn.now_ms, turn.settings.silence_ms)
                _end_request(turn, node_id, _take_silence(turn, node_id))
        case SnapshotsChanged(start_offset, snapshots):
            # An event from before a received snapshot was installed describes the former log.
            if start_offset >= turn.log.start_offset:
                turn.log = turn.log.trimmed(start_offset, snapshots)
        case SnapshotInstalled(log):
            snapshot_fetching.snapshot_installed(turn, log)
        case SnapshotRefused():
            snapshot_fetching.snapshot_refused(turn)
        case UpgradeKRaftVersion(token, validate_only):
            voter_changes.upgrade_kraft_version(turn, token, validate_only=validate_only)
        case Resign():
            if isinstance(turn.role, Leader) and len(turn.voters.voters) > 1:
                turn.become_resigned(successors(turn, turn.role))
        case Stop():
            turn.stopping = True
        case TimePassed():
            pass


def _take_request(turn: Turn, token: int, request: Request) -> None:
    match request:
        case Fetch():
            leading.on_fetch(turn, token, request)
        case Vote():
            elections.on_vote(turn, token, request)
        case BeginQuorumEpoch():
            announcing.on_begin_quorum_epoch(turn, token, request)
        case EndQuorumEpoch():
            announcing.on_end_quorum_epoch(turn, token, request)
        case FetchSnapshot():
            snapshot_fetching.on_fetch_snapshot(turn, token, request)
        case AddVoter():
            voter_changes.on_add_voter(turn, token, request)
        case RemoveVoter():
            voter_changes.on_remove_voter(turn, token, request)
        case UpdateVoter():
            voter_changes.on_update_voter(turn, token, request)
        case AskVersions():
            turn.answer(token, Versions(ErrorCode.NONE, turn.local.kraft_versions))


def _note_presence(turn: Turn, node_id: int, answer: Answer) -> None:
    """Note whether the replica's address refused the connection."""
    known = turn.connections
    turn.connections = known.refused_by(node_id) if isinstance(answer, Refused) else known.heard(node_id)


def _take_answer(turn: Turn, node_id: int, answer: Answer) -> bool:
    """Take an answer; return whether that replica may be asked again at once."""
    match answer:
        case FetchAnswer():
            return following.on_fetch_answer(turn, answer)
        case VoteAnswer():
            return elections.on_vote_answer(turn, node_id, answer)
        case FetchSnapshotAnswer():
            return snapshot_fetching.on_fetch_snapshot_answer(turn, answer)
        case Versions():
            return voter_changes.on_versions(turn, node_id, answer)
        case ChangeAnswer():
            # If the leader refused the change that this replica asked for, the update timer asks again.
            return True
        case Acknowledged():
            return _take_acknowledgement(turn, node_id, answer)
        case Refused():
            following.on_refused(turn, node_id)
            return _take_silence(turn, node_id)


def _take_silence(turn: Turn, node_id: int) -> bool:
    """A request has no answer; return False: the next request must pause."""
    voter_changes.on_versions(turn, node_id, Versions(ErrorCode.BROKER_NOT_AVAILABLE))
    return False


def _take_acknowledgement(turn: Turn, node_id: int, answer: Acknowledged) -> bool:
    """The role tells which request was acknowledged: a leader sends BeginQuorumEpoch, and so on."""
    if isinstance(turn.role, Leader):
        return announcing.on_begin_answer(turn, answer)
    if isinstance(turn.role, Resigned):
        return announcing.on_end_answer(turn, node_id, answer)
    return voter_updates.on_update_answer(turn, answer)


def _end_request(turn: Turn, node_id: int, may_go_on: bool) -> None:
    """Free the connection, at once or after a pause."""
    if may_go_on:
        turn.connections = turn.connections.freed(node_id)
    else:
        turn.connections = turn.connections.paused(node_id, turn.now_ms + turn.settings.retry_backoff_ms)


def _poll_until_settled(turn: Turn) -> None:
    """Let the role act, and each new role that results."""
    while True:
        before = turn.role
        _poll(turn)
        if type(before) is type(turn.role) and before.epoch == turn.role.epoch:
            return


def _poll(turn: Turn) -> None:
    role = turn.role
    match role:
        case Leader():
            leading.poll_leader(turn, role)
        case Follower():
            following.poll_follower(turn, role)
        case Unattached():
            following.poll_unattached(turn, role)
        case Prospective():
            elections.poll_prospective(turn, role)
        case Candidate():
            elections.poll_candidate(turn, role)
        case Resigned():
            announcing.poll_resigned(turn, role)
            if turn.stopping:
                following.ask_voters(turn)


def next_deadline_ms(state: RaftState, now_ms: int) -> int | None:
    """When to hand in `TimePassed`; None: no deadline lies ahead.

    A deadline that has passed already waits for another event, such as a free connection.
    """
    return min((deadline_ms for deadline_ms in _deadlines(state) if deadline_ms > now_ms), default=None)


def _deadlines(state: RaftState) -> Iterator[int]:
    role = state.role
    for connection in state.connections.busy.values():
        yield connection.until_ms
    deadlines: tuple[int | None, ...]
    if isinstance(role, Leader):
        deadlines = (role.check_quorum_deadline_ms, role.begin_epoch_deadline_ms)
        yield from (parked.deadline_ms for parked in role.parked)
        if role.change is not None:
            yield role.change.deadline_ms
    elif isinstance(role, Follower):
        deadlines = (role.fetch_deadline_ms, role.election_deadline_ms, role.update_deadline_ms)
    else:
        deadlines = (role.election_deadline_ms,)
    yield from (deadline_ms for deadline_ms in deadlines if deadline_ms is not None)


def current(state: RaftState) -> Current:
    """The epoch of a replica, and the leader that it knows."""
    return Turn(state, Moment(0, 0.0)).current


def others(state: RaftState) -> tuple[Destination, ...]:
    """The other voters, or the bootstrap servers while the log names no voters."""
    listener, voters = state.settings.listener, state.log.voters
    if not voters.voters:
        return Turn(state, Moment(0, 0.0)).bootstrap
    return tuple(
        Destination(voter.key.node_id, voter.endpoints[listener])
        for voter in voters.others(state.local.key.node_id)
        if listener in voter.endpoints
    )


def is_majority_gone(state: RaftState) -> bool:
    """Whether the voters whose addresses do not refuse connections are no majority."""
    voting = len(state.log.voters.voters)
    there = voting - len(Turn(state, Moment(0, 0.0)).gone)
    return voting > 0 and not is_majority(there, voting)


def may_stop(state: RaftState) -> bool:
    """Whether a stopping replica has handed over, has nothing to hand over, or too few voters are left."""
    role = state.role
    if is_majority_gone(state):
        return True
    if not state.log.voters.is_voter(state.local.key) or state.log.voters.is_only_voter(state.local.key):
        return True
    if isinstance(role, (Unattached, Prospective)):
        return role.leader_id not in (None, state.local.key.node_id)
    return isinstance(role, Follower)
