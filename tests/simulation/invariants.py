"""What must hold in every quorum after every event (Raft, and KRaft's additions to it).

They look at what replicas write, send and commit, never at what the core believes of itself. "Committed" is a
list of this file's own: it grows when a leader first moves its high watermark over a record, and never
shrinks.
"""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.log_view import Batch, SnapshotId
from pykafka_broker.raft.core.messages import (
    Answer,
    EndQuorumEpoch,
    FetchAnswer,
    FetchSnapshotAnswer,
    Refused,
    Request,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.quorum import ReplicaKey, VoterSet
from pykafka_broker.raft.core.roles import Follower, Leader, Resigned
from pykafka_broker.raft.core.state import Answered, ElectionState, Event, RaftState, RaftStep, Received
from tests.simulation.replica import Replica, SnapshotContent
from tests.simulation.violation import Violation, check


class Invariants:
    """Told of everything that replicas do."""

    def __init__(self) -> None:
        #: The committed records, by offset: the epoch and the value of each.
        self.committed: list[tuple[int, object]] = []
        #: By offset: the epoch of the leader that committed the record.
        self._committed_in: list[int] = []
        #: The digest of all clients' records that are committed below each offset.
        self.digests: list[int] = [0]
        self.leaders: dict[int, int] = {}
        #: The epochs whose leaders have committed something.
        self._committing: set[int] = set()
        #: By epoch: who voted for whom.
        self._votes: dict[int, dict[ReplicaKey, ReplicaKey]] = {}
        self._records: dict[tuple[int, int], tuple[object, int]] = {}
        self._elections: dict[ReplicaKey, ElectionState] = {}
        self._high_watermarks: dict[int, int] = {}
        #: The epoch in which a replica has fetched from a leader that has not said it resigned, and until
        #: when the leader has time at least, by the fastest clock.
        self._fetched: dict[int, tuple[int, float]] = {}

    # -- what replicas do ------------------------------------------------------------------------------

    def started(self, replica: Replica) -> None:
        """A replica begins to know its high watermark anew."""
        self._high_watermarks.pop(replica.node_id, None)
        self._fetched.pop(replica.node_id, None)

    def persisted(self, replica: Replica, election: ElectionState) -> None:
        """quorum-state: epochs do not go back, and a vote is not changed within an epoch."""
        key = replica.local.key
        before = self._elections.get(key, ElectionState())
        name = f"n{replica.node_id}"
        check(election.leader_epoch >= before.leader_epoch, f"{name} goes back to epoch {election}")
        if election.leader_epoch == before.leader_epoch:
            kept = before.leader_id in (-1, election.leader_id)
            check(kept, f"{name} knows another leader of the epoch: {before} {election}")
        self._elections[key] = election

    def appends(self, replica: Replica, batch: Batch) -> None:
        """Logs match: an offset and an epoch name one record, after one other record."""
        log = replica.disk.log
        before = replica.disk.last_epoch()
        check(batch.epoch >= before, f"n{replica.node_id} appends epoch {batch.epoch} after {before}")
        check(batch.base_offset == log.end_offset, f"n{replica.node_id} appends {batch} at {log.end_offset}")
        values = batch.control or batch.data
        assert isinstance(values, tuple)
        for place, value in enumerate(values):
            offset = batch.base_offset + place
            known = self._records.setdefault((offset, batch.epoch), (value, before))
            check(
                known == (value, before),
                f"offset {offset} in {batch.epoch} is {known} and {(value, before)} on n{replica.node_id}",
            )
            before = batch.epoch
        for offset in range(batch.base_offset, min(batch.next_offset, len(self.committed))):
            # A leader that does not know of the next one yet may append, in its older epoch.
            check(
                batch.epoch <= self._committed_in[offset],
                f"n{replica.node_id} writes epoch {batch.epoch} over the committed offset {offset}",
            )

    def truncates(self, replica: Replica, end_offset: int) -> None:
        """What a replica knows to be committed stays."""
        known = self._high_watermarks.get(replica.node_id, 0)
        check(end_offset >= known, f"n{replica.node_id} truncates to {end_offset}, below {known}")

    def installs(self, replica: Replica, snapshot_id: SnapshotId, content: SnapshotContent) -> None:
        """A snapshot holds what is committed below its end."""
        end_offset = snapshot_id.end_offset
        check(content.snapshot_id == snapshot_id, f"n{replica.node_id} gets {content} for {snapshot_id}")
        check(end_offset <= len(self.committed), f"{snapshot_id} is not committed")
        check(content.digest == self.digests[end_offset], f"{snapshot_id} holds other records")
        check(not replica.is_leader, f"the leader n{replica.node_id} loads a snapshot")

    def advanced(self, replica: Replica, offset: int) -> None:
        """The high watermark of a replica moves: it never goes back, and all agree on what is below."""
        name = f"n{replica.node_id}"
        before = self._high_watermarks.get(replica.node_id)
        check(
            before is None or offset >= before, f"the high watermark of {name} goes from {before} to {offset}"
        )
        end_offset = replica.disk.log.end_offset
        check(offset <= end_offset, f"{name} commits {offset}, and its log ends at {end_offset}")
        if offset > len(self.committed):
            role = replica.state.role if replica.state is not None else None
            # A leader that was voted out resigns in the step in which that is committed.
            check(isinstance(role, (Leader, Resigned)), f"{name} commits {offset} before any leader does")
            self._commit(replica, offset)
        start_offset = max(before or 0, replica.disk.log.start_offset)
        for place, epoch, value in _records(replica, start_offset, offset):
            check(
                self.committed[place] == (epoch, value),
                f"{name} has {(epoch, value)} at {place}, and {self.committed[place]} is committed",
            )
        self._high_watermarks[replica.node_id] = offset
        if replica.is_leader and replica.state is not None:
            voters, at, _ = replica.state.log.membership
            is_in_office = at >= offset or voters.is_voter(replica.local.key)
            check(is_in_office, f"{name} leads on, and the voters without it are committed")

    def _commit(self, replica: Replica, offset: int) -> None:
        """A leader is the first to commit: a record of its own epoch, on the disks of a majority."""
        role = replica.state.role if replica.state is not None else None
        assert isinstance(role, (Leader, Resigned))
        for _, epoch, value in _records(replica, len(self.committed), offset):
            self.committed.append((epoch, value))
            self._committed_in.append(role.epoch)
            self.digests.append(digest(self.digests[-1], epoch, value))
        last_epoch = self.committed[-1][0]
        check(
            last_epoch == role.epoch,
            f"n{replica.node_id} commits a record of epoch {last_epoch} in {role.epoch}",
        )
        self._committing.add(role.epoch)
        voters = replica.disk.view().voters
        holders = [
            voter.key.node_id
            for voter in voters.voters.values()
            if replica.surroundings.disk_of(voter.key).holds(offset, last_epoch)
        ]
        check(
            2 * len(holders) > len(voters.voters),
            f"n{replica.node_id} commits {offset}, which is on disk at {holders} of {sorted(voters.voters)}",
        )

    # -- what is said ----------------------------------------------------------------------------------

    def asks(self, replica: Replica, request: Request) -> None:
        """A candidate asks for votes once its own is on disk."""
        if isinstance(request, Vote) and not request.pre_vote:
            self._is_written(replica, request)

    def replied(self, replica: Replica, request: Request, answer: Answer) -> None:
        """A vote is given to one candidate of an epoch, and a pre-vote not while there is a leader."""
        if not isinstance(request, Vote) or not isinstance(answer, VoteAnswer) or not answer.granted:
            return
        if request.pre_vote:
            epoch, until_ms = self._fetched.get(replica.node_id, (-1, 0))
            check(
                epoch != request.epoch or replica.surroundings.world.now_ms >= until_ms,
                f"n{replica.node_id} fetches from the leader of {request.epoch} and would elect another",
            )
        else:
            self._is_written(replica, request)
            self._votes_for(replica.local.key, request.epoch, request.candidate)

    def _is_written(self, replica: Replica, request: Vote) -> None:
        """The vote is on disk, or a later word on its epoch."""
        written = replica.disk.durable_election()
        is_later = written.leader_epoch > request.epoch or written.leader_id >= 0
        is_there = written.leader_epoch == request.epoch and written.voted_id == request.candidate.node_id
        check(
            is_there or (written.leader_epoch >= request.epoch and is_later),
            f"n{replica.node_id} votes in {request.epoch}, and {written} is on its disk",
        )

    def _votes_for(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        known = self._votes.setdefault(epoch, {}).setdefault(voter, candidate)
        check(known == candidate, f"{voter.node_id} votes for {known} and {candidate} in epoch {epoch}")

    def heard(self, replica: Replica, before: RaftState, event: Event) -> None:
        """Keep which leader a replica has fetched from, and not been told since that it ends or has ended."""
        role = replica.state.role if replica.state is not None else None
        node_id = replica.node_id
        leader_id = role.leader_id if isinstance(role, Follower) else None
        if isinstance(event, Answered) and isinstance(event.answer, (FetchAnswer, FetchSnapshotAnswer)):
            if (
                isinstance(event.answer, FetchAnswer)
                and event.answer.error is ErrorCode.NONE
                and isinstance(role, Follower)
                # Else its time was over before it took the answer, and the request given up.
                and role.election_deadline_ms is None
                and event.answer.current.epoch == role.epoch
                and before.connections.expects(event.node_id, event.request_id)
            ):
                time_ms = replica.surroundings.world.now_ms + 0.9 * before.settings.fetch_timeout_ms
                self._fetched[node_id] = role.epoch, time_ms
        elif (isinstance(event, Received) and isinstance(event.request, EndQuorumEpoch)) or (
            isinstance(event, Answered)
            and isinstance(event.answer, Refused)
            and event.node_id == leader_id
            and before.connections.expects(event.node_id, event.request_id)
        ):
            self._fetched.pop(node_id, None)
        if not isinstance(role, Follower):
            self._fetched.pop(node_id, None)

    # -- roles -----------------------------------------------------------------------------------------

    def stepped(self, replica: Replica, before: RaftState, step: RaftStep) -> None:
        """One leader for an epoch, who has all that is committed; and the core knows its log."""
        state = replica.state
        if state is None:
            return
        role, log = state.role, replica.disk.log
        name = f"n{replica.node_id}"
        # Messages are made only when they are needed: this is called after every event.
        if role.epoch < before.role.epoch:
            raise Violation(f"{name} goes back from {before.role} to {role}")
        if (state.log.end_offset, state.log.last_epoch) != (log.end_offset, replica.disk.last_epoch()):
            raise Violation(f"{name} takes its log for {state.log}, and it ends at {log.end_offset}")
        if isinstance(role, Leader) and (
            not isinstance(before.role, Leader) or before.role.epoch != role.epoch
        ):
            self.elected(replica, before, role)
        if step.append:
            self._check_change(replica, before)
        if step.append or step.truncate is not None or any(batch.control for batch in step.replicate):
            counting = replica.disk.view().voters
            check(state.log.voters == counting, f"{name} counts {state.log.voters}, its log names {counting}")

    def elected(self, replica: Replica, before: RaftState, role: Leader) -> None:
        """A replica has become leader."""
        known = self.leaders.setdefault(role.epoch, replica.node_id)
        check(known == replica.node_id, f"epoch {role.epoch} is led by {known} and {replica.node_id}")
        self._votes_for(replica.local.key, role.epoch, replica.local.key)
        votes, voters = self._votes[role.epoch], before.log.voters.voters
        granted = [
            voter.node_id
            for voter, candidate in votes.items()
            if candidate == replica.local.key and before.log.voters.is_voter(voter)
        ]
        check(
            2 * len(granted) > len(voters),
            f"n{replica.node_id} leads {role.epoch} with the votes of {granted} of {sorted(voters)}",
        )
        end_offset = len(self.committed)
        check(
            replica.disk.log.end_offset >= end_offset,
            f"n{replica.node_id} leads {role.epoch} without the committed record {end_offset - 1}",
        )
        batch = replica.disk.log.batch_at(end_offset - 1) if end_offset else None
        if batch is not None:
            check(
                batch.epoch == self.committed[end_offset - 1][0],
                f"n{replica.node_id} leads {role.epoch} with another record at {end_offset - 1}",
            )

    def _check_change(self, replica: Replica, before: RaftState) -> None:
        """Voters change one at a time, from voters that are committed."""
        assert replica.state is not None
        old, new = before.log.membership, replica.state.log.membership
        if new.offset == old.offset:
            return
        name = f"n{replica.node_id}"
        changed = _keys(old.voters) ^ _keys(new.voters)
        check(
            not changed or old.kraft_version == 0 or len({key.node_id for key in changed}) == 1,
            f"{name} changes {len(changed)} voters at once",
        )
        if changed:
            check(old.offset < len(self.committed), f"{name} changes voters that are not committed")
            epoch = replica.state.role.epoch
            check(epoch in self._committing, f"{name} changes voters before it has committed in {epoch}")

    def finished(self, replicas: list[Replica]) -> None:
        """All is healed: every replica has all that was ever committed."""
        end_offset = len(self.committed)
        for replica in replicas:
            state = replica.state
            known = None if state is None else state.high_watermark
            check(known == end_offset, f"n{replica.node_id} knows {known} of {end_offset} committed records")
            if state is not None and replica.is_leader:
                is_voter = state.log.voters.is_voter(replica.local.key)
                check(is_voter, f"n{replica.node_id} leads and is no voter")


def _records(replica: Replica, start_offset: int, end_offset: int) -> list[tuple[int, int, object]]:
    """Offset, epoch and value of the records of a log between two offsets."""
    found: list[tuple[int, int, object]] = []
    for batch in reversed(replica.disk.log.batches):
        if batch.next_offset <= start_offset:
            break
        values = batch.control or batch.data
        assert isinstance(values, tuple)
        found += [
            (batch.base_offset + place, batch.epoch, value)
            for place, value in reversed(list(enumerate(values)))
            if start_offset <= batch.base_offset + place < end_offset
        ]
    found.reverse()
    return found


def _keys(voters: VoterSet) -> set[ReplicaKey]:
    return {voter.key for voter in voters.voters.values()}


def digest(before: int, epoch: int, value: object) -> int:
    """A digest with one more record, the same in every process. Control records are the core's own."""
    return hash((before, epoch, value)) if isinstance(value, int) else before
