"""Replicas of the tests of `raft/core`: node 1 of three voters, on a clock that a test moves itself."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import EpochStart, LogView, Membership
from pykafka_broker.raft.core.messages import Answer, Current, Fetch, FetchAnswer, Request, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Role
from pykafka_broker.raft.core.settings import Settings
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
    TimePassed,
)

NONE = ErrorCode.NONE
SETTINGS = Settings(bootstrap=(("node1", 9093), ("node2", 9093), ("node3", 9093)))
#: When a test begins.
START_MS = 100_000


def key(node_id: int) -> ReplicaKey:
    """A node on its own disk."""
    return ReplicaKey(node_id, node_id.to_bytes(16, "big", signed=True))


def voter(node_id: int) -> Voter:
    """A node as a voter."""
    return Voter(key(node_id), {"CONTROLLER": (f"node{node_id}", 9093)})


def voters(*node_ids: int) -> VoterSet:
    """Some nodes as the voters."""
    return VoterSet({node_id: voter(node_id) for node_id in node_ids})


def log_of(
    *epochs: tuple[int, int], end: int, among: VoterSet | None = None, kraft_version: int = 1
) -> LogView:
    """A log on disk, of epochs that start at these offsets; its voters stand at offset 0."""
    membership = Membership(among or voters(1, 2, 3), 0 if kraft_version else -1, kraft_version)
    starts = tuple(EpochStart(epoch, offset) for epoch, offset in epochs)
    return LogView(end, starts[-1].epoch, (membership,), flushed_offset=end, epochs=starts)


#: Ten records of epoch 3, after ten of epoch 1.
LOG = log_of((1, 0), (3, 10), end=20)


class Node:
    """A replica, and the last step it took."""

    def __init__(
        self,
        election: ElectionState,
        log: LogView = LOG,
        *,
        node_id: int = 1,
        settings: Settings = SETTINGS,
    ) -> None:
        self.now_ms = START_MS
        self.chance = 0.0
        self.step: RaftStep = transitions.boot(voter(node_id), election, log, self._moment(), settings)
        self._token = 0

    def _moment(self) -> Moment:
        return Moment(self.now_ms, self.chance)

    @property
    def state(self) -> RaftState:
        """The replica as it is now."""
        return self.step.state

    @property
    def role(self) -> Role:
        """Its role."""
        return self.state.role

    @property
    def leader(self) -> Leader:
        """Its role, of a leader."""
        role = self.role
        assert isinstance(role, Leader)
        return role

    @property
    def follower(self) -> Follower:
        """Its role, of a follower."""
        role = self.role
        assert isinstance(role, Follower)
        return role

    def take(self, event: Event) -> RaftStep:
        """Hand in an event."""
        self.step = transitions.step(self.state, event, self._moment())
        return self.step

    def wait(self, milliseconds: int) -> RaftStep:
        """Let time pass, from deadline to deadline."""
        end_ms = self.now_ms + milliseconds
        while True:
            deadline_ms = transitions.next_deadline_ms(self.state, self.now_ms)
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self.now_ms = deadline_ms
            self.take(TimePassed())
        self.now_ms = end_ms
        return self.step

    def ask(self, request: Request) -> Answer | None:
        """Send it a request; return its answer, None while it is kept."""
        self._token += 1
        step = self.take(Received(self._token, request))
        return next((reply.answer for reply in step.reply if reply.token == self._token), None)

    def answer(self, node_id: int, answer: Answer) -> RaftStep:
        """Answer the request for which it waits."""
        request_id = self.state.connections.busy[node_id].request_id
        assert request_id is not None
        return self.take(Answered(node_id, request_id, answer))

    @property
    def sent(self) -> dict[int, Request]:
        """The requests of the last step, by the node they go to."""
        return {send.to.node_id: send.request for send in self.step.send}


def following(leader_id: int = 2, epoch: int = 3, log: LogView = LOG) -> Node:
    """A follower that has just sent its first Fetch."""
    node = Node(ElectionState(epoch, leader_id), log)
    node.take(TimePassed())
    assert isinstance(node.role, Follower)
    return node


def leading(log: LogView = LOG) -> Node:
    """A leader of epoch 4 with its first record on disk, which no other has yet."""
    node = Node(ElectionState(3), log)
    node.wait(SETTINGS.election_timeout_ms)
    others = [other for other in log.voters.voters if other != 1]
    for pre_vote_of in others[: len(log.voters.voters) // 2]:
        node.answer(pre_vote_of, VoteAnswer(NONE, Current(3), granted=True))
    assert isinstance(node.state.role, Candidate)
    for vote_of in others[: len(log.voters.voters) // 2]:
        node.answer(vote_of, VoteAnswer(NONE, Current(4), granted=True))
    assert isinstance(node.role, Leader)
    node.take(Flushed(node.state.log.end_offset))
    return node


def fetch(node_id: int, offset: int, last_epoch: int = 4, epoch: int = 4, **other: int) -> Fetch:
    """The Fetch of another replica."""
    return Fetch(epoch, key(node_id), offset, last_epoch, 500, **other)


def committed(log: LogView = LOG) -> Node:
    """A leader of epoch 4 with everything committed."""
    node = leading(log)
    end_offset = node.state.log.end_offset
    for node_id in log.voters.voters:
        if node_id != 1:
            node.ask(fetch(node_id, end_offset))
    assert node.leader.high_watermark == end_offset
    return node


def append(node: Node, count: int, *, flushed: bool = True) -> None:
    """Let a leader append records."""
    end_offset = node.state.log.end_offset + count
    node.take(Appended(end_offset))
    if flushed:
        node.take(Flushed(end_offset))


def fetched(leader_id: int = 2, epoch: int = 3, **answer: Any) -> FetchAnswer:
    """The answer of a leader to Fetch."""
    current = Current(epoch, leader_id, voter(leader_id).endpoints)
    return FetchAnswer(NONE, current)._replace(**answer)
