"""One step while it is decided: the new state of the replica, and the actions gathered so far.

The changes of roles are here because several modules make them.
"""

from __future__ import annotations

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.log_view import Batch
from pykafka_broker.raft.core.messages import (
    Acknowledged,
    Answer,
    ChangeAnswer,
    Current,
    Destination,
    FetchAnswer,
    Request,
)
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey, VoterSet, is_majority
from pykafka_broker.raft.core.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from pykafka_broker.raft.core.state import Chunk, ElectionState, Moment, RaftState, RaftStep, Reply, Send

#: The first id of bootstrap servers, whose node ids are unknown; the next ones are lower.
_FIRST_BOOTSTRAP_ID = -2


class Turn:
    """Made for one event; `done` returns it as a `RaftStep`."""

    __slots__ = (
        "_election",
        "advance",
        "append",
        "chance",
        "connections",
        "high_watermark",
        "local",
        "log",
        "now_ms",
        "receive",
        "replicate",
        "reply",
        "role",
        "send",
        "settings",
        "stopping",
        "truncate",
    )

    def __init__(self, state: RaftState, moment: Moment) -> None:
        self.local = state.local
        self.settings = state.settings
        self.now_ms, self.chance = moment
        self.role = state.role
        self.log = state.log
        self._election = state.election
        self.high_watermark = state.high_watermark
        settings = state.settings
        self.connections = state.connections.at(moment.now_ms, settings.retry_backoff_ms, settings.silence_ms)
        self.stopping = state.stopping
        self.truncate: int | None = None
        self.append: tuple[object, ...] = ()
        self.replicate: tuple[Batch, ...] = ()
        self.receive: Chunk | None = None
        self.send: list[Send] = []
        self.reply: list[Reply] = []
        self.advance: int | None = None

    def done(self) -> RaftStep:
        """The step."""
        election = _election_of(self.role, self.local.key)
        state = RaftState(
            self.local,
            self.role,
            self.log,
            self.settings,
            election,
            self.high_watermark,
            self.connections,
            self.stopping,
        )
        return RaftStep(
            state,
            None if election == self._election else election,
            self.truncate,
            self.append,
            self.replicate,
            self.receive,
            tuple(self.send),
            tuple(self.reply),
            self.advance,
        )

    # -- facts -------------------------------------------------------------------------------------------

    @property
    def node_id(self) -> int:
        """The id of this node."""
        return self.local.key.node_id

    @property
    def epoch(self) -> int:
        """The epoch of the role."""
        return self.role.epoch

    @property
    def voters(self) -> VoterSet:
        """The newest voters."""
        return self.log.voters

    @property
    def is_voter(self) -> bool:
        """Whether this copy of the log votes."""
        return self.log.voters.is_voter(self.local.key)

    @property
    def may_stand(self) -> bool:
        """Whether this replica may be elected."""
        return self.log.may_stand(self.local.key, self.high_watermark or 0)

    @property
    def gone(self) -> frozenset[int]:
        """The voters whose addresses refused connections during this role."""
        listener, refused = self.settings.listener, self.connections.refused
        voters = self.voters.voters
        return frozenset(
            node_id for node_id, voter in voters.items() if voter.endpoints.get(listener) in refused
        )

    @property
    def leader_id(self) -> int | None:
        """The leader of the epoch; None if unknown."""
        role = self.role
        if isinstance(role, (Leader, Resigned)):
            return self.node_id
        return None if isinstance(role, Candidate) else role.leader_id

    @property
    def leader_endpoints(self) -> Endpoints:
        """The leader's endpoints; empty if unknown."""
        role = self.role
        if isinstance(role, (Leader, Resigned)):
            return self.local.endpoints
        return role.endpoints if isinstance(role, (Follower, Prospective)) else {}

    @property
    def current(self) -> Current:
        """The epoch and leader that every answer has."""
        return Current(self.epoch, self.leader_id, self.leader_endpoints)

    @property
    def bootstrap(self) -> tuple[Destination, ...]:
        """The bootstrap servers without this node."""
        own = self.local.endpoints.get(self.settings.listener)
        return tuple(
            Destination(_FIRST_BOOTSTRAP_ID - place, address)
            for place, address in enumerate(self.settings.bootstrap)
            if address != own
        )

    def has_reached(self, deadline_ms: int | None) -> bool:
        """Whether a deadline is set and has come."""
        return deadline_ms is not None and self.now_ms >= deadline_ms

    # -- requests and answers ----------------------------------------------------------------------------

    def ask(self, to: Destination, request: Request) -> bool:
        """Send a request, unless this replica is still busy with another one; return whether it was sent."""
        if not self.connections.is_ready(to.node_id):
            return False
        self.send.append(Send(to, self.connections.next_id, request))
        until_ms = self.now_ms + self.settings.request_timeout_ms
        self.connections = self.connections.sent(*to, until_ms)
        return True

    def ask_voter(self, node_id: int, request: Request) -> bool:
        """Send a request to a voter, if it has an address on the listener of controllers."""
        address = self.voters.endpoints_of(node_id).get(self.settings.listener)
        return address is not None and self.ask(Destination(node_id, address), request)

    def answer(self, token: int, answer: Answer) -> None:
        """Answer a request."""
        self.reply.append(Reply(token, answer))

    def acknowledge(self, token: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a request with `Acknowledged`."""
        self.answer(token, Acknowledged(error, self.current))

    # -- roles -------------------------------------------------------------------------------------------

    def become_unattached(self, epoch: int, leader_id: int | None = None) -> None:
        """Wait for the leader of `epoch`, and for an election if none appears."""
        role = self.role
        if epoch < role.epoch:
            raise IllegalState(f"epoch {epoch} cannot follow {role}")
        voted = None
        if epoch == role.epoch:
            if not isinstance(role, (Prospective, Unattached)):
                raise IllegalState(f"unattached cannot follow {role}")
            voted, leader_id = role.voted, role.leader_id
        self._become(Unattached(epoch, leader_id, voted, self._election_deadline_ms()))

    def _election_deadline_ms(self) -> int | None:
        """A voter keeps its running election deadline: new epochs must not delay its election."""
        if not self.may_stand:
            return None
        role = self.role
        if isinstance(role, Prospective) and is_majority(len(role.refused), len(self.voters.voters)):
            return self.next_election_ms()
        if isinstance(role, (Unattached, Prospective, Candidate, Resigned)) and role.election_deadline_ms:
            return role.election_deadline_ms
        return self.next_election_ms()

    def next_election_ms(self) -> int:
        """A new election timer."""
        return self.settings.election_deadline_ms(self.now_ms, self.chance)

    def election_in_order_ms(self) -> int:
        """When to start an election that other voters may want at the same moment.

        Voters with lower ids go first, unless their addresses refuse connections. An observer does not wait.
        """
        if not self.may_stand:
            return self.now_ms
        others = self.voters.voters.keys() - self.gone - {self.leader_id}
        place = sum(node_id < self.node_id for node_id in others)
        return self.settings.election_in_order_ms(self.now_ms, self.chance, place)

    def become_follower(
        self, epoch: int, leader_id: int, endpoints: Endpoints, fetch_deadline_ms: int | None = None
    ) -> None:
        """Fetch from the leader of `epoch`; its time-out starts anew unless `fetch_deadline_ms` is given."""
        role = self.role
        if fetch_deadline_ms is None:
            fetch_deadline_ms = self.now_ms + self.settings.fetch_timeout_ms
        known = self.leader_id
        if epoch < role.epoch or leader_id == self.node_id:
            raise IllegalState(f"node {self.node_id} cannot follow {leader_id} in {epoch} after {role}")
        if epoch == role.epoch and known is not None and known != leader_id:
            raise IllegalState(f"epoch {epoch} has the leader {known}, not {leader_id}")
        self._become(
            Follower(
                epoch,
                leader_id,
                endpoints,
                fetch_deadline_ms=fetch_deadline_ms,
                update_deadline_ms=self.now_ms + self.settings.update_voter_interval_ms,
            )
        )

    def become_prospective(self) -> None:
        """Ask the voters whether they would elect this replica."""
        role = self.role
        voted = role.voted if isinstance(role, Unattached) else None
        self._become(
            Prospective(
                role.epoch,
                self.leader_id,
                self.leader_endpoints,
                voted,
                self._own_vote,
                election_deadline_ms=self.next_election_ms(),
                fetch_deadline_ms=self._fetch_deadline_to_come,
            )
        )

    @property
    def _fetch_deadline_to_come(self) -> int | None:
        """The leader's deadline, if a follower starts its election before that; otherwise None."""
        role = self.role
        if not isinstance(role, Follower) or self.has_reached(role.fetch_deadline_ms):
            return None
        return role.fetch_deadline_ms

    def become_candidate(self) -> None:
        """Begin a new epoch, and ask for votes in it."""
        deadline_ms = self.next_election_ms()
        self._become(Candidate(self.epoch + 1, self._own_vote, election_deadline_ms=deadline_ms))

    @property
    def _own_vote(self) -> frozenset[int]:
        return frozenset({self.node_id} if self.is_voter else ())

    def become_leader(self) -> None:
        """Lead the epoch of this candidate, and append the leader change."""
        role = self.role
        voting = len(self.voters.voters)
        if not isinstance(role, Candidate):
            raise IllegalState(f"{role} is no candidate")
        granted = len(role.granted & self.voters.voters.keys())
        if not is_majority(granted, voting):
            raise IllegalState(f"{granted} of {voting} voters are no majority: {role} does not lead")
        several = voting > 1
        self._become(
            Leader(
                role.epoch,
                self.log.end_offset,
                check_quorum_deadline_ms=self.now_ms + self.settings.check_quorum_timeout_ms
                if several
                else None,
                begin_epoch_deadline_ms=self.now_ms if several else None,
            )
        )
        self.append_control(*self._first_records(role))

    def _first_records(self, candidate: Candidate) -> tuple[object, ...]:
        """The leader change; also the voters if the log has none yet, or this voter's entry has changed."""
        change = m.LeaderChangeMessage(
            version=0,
            leader_id=self.node_id,
            voters=[m.LeaderChangeMessageVoter(voter_id=voter) for voter in self.voters.voters],
            granting_voters=[
                m.LeaderChangeMessageVoter(voter_id=voter) for voter in sorted(candidate.granted)
            ],
        )
        voters, offset, kraft_version = self.log.membership
        if not kraft_version:
            return (change,)
        current = voters.with_voter(self.local) if self.is_voter else voters
        if offset >= 0 and current == voters:
            return (change,)
        version = m.KRaftVersionRecord(version=0, kraft_version=kraft_version)
        return change, version, current.to_record()

    def become_resigned(self, successors: tuple[ReplicaKey, ...]) -> None:
        """Stop leading."""
        unaware = frozenset(voter.key.node_id for voter in self.voters.others(self.node_id))
        self._become(Resigned(self.epoch, successors, unaware, self.next_election_ms()))

    def _become(self, role: Role) -> None:
        before, self.role = self.role, role
        if type(role) is not type(before) or role.epoch != before.epoch:
            self.connections = self.connections.all_closed()
        if isinstance(before, Leader):
            self._refuse_waiting(before)

    def _refuse_waiting(self, leader: Leader) -> None:
        """Refuse the requests that wait for this leader."""
        for parked in leader.parked:
            self.answer(parked.token, FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.current))
        if leader.change is not None:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.answer(leader.change.token, ChangeAnswer(error, error.message, self.current))

    # -- the log of a leader -----------------------------------------------------------------------------

    def commit(self, high_watermark: int) -> None:
        """Everything below is committed."""
        if high_watermark > (self.high_watermark or 0):
            self.high_watermark = self.advance = high_watermark

    def append_control(self, *records: object) -> int:
        """Append control records as one batch of the own epoch; return the offset after them."""
        if self.append:
            raise IllegalState("a step appends one batch of control records")
        self.append = records
        base_offset = self.log.end_offset
        batch = Batch(base_offset, base_offset + len(records), self.epoch, records)
        self.log = self.log.appended((batch,))
        return batch.next_offset


def _election_of(role: Role, local: ReplicaKey) -> ElectionState:
    """The election state that a role needs on disk."""
    if isinstance(role, (Leader, Resigned)):
        return ElectionState(role.epoch, local.node_id)
    if isinstance(role, Candidate):
        return ElectionState(role.epoch, -1, *local)
    leader_id = -1 if role.leader_id is None else role.leader_id
    if isinstance(role, Follower) or role.voted is None or leader_id >= 0:
        return ElectionState(role.epoch, leader_id)
    return ElectionState(role.epoch, leader_id, *role.voted)
