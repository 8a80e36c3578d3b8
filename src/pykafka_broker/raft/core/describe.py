"""DescribeQuorum: the voters and observers as the leader knows them, or as a leaderless replica does."""

from __future__ import annotations

from pykafka_broker.raft.core.progress import OBSERVER_SESSION_MS
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.roles import Follower, Leader, Progress
from pykafka_broker.raft.core.state import RaftState
from pykafka_broker.system.named_tuple import NamedTuple

#: The id of the leader where none is known.
NO_LEADER = -1


class ReplicaStatus(NamedTuple):
    """One replica; times are -1 before its first fetch, and before it first caught up."""

    key: ReplicaKey
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumStatus(NamedTuple):
    """The quorum as its leader sees it; a high watermark of -1 is not known yet."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaStatus, ...]
    observers: tuple[ReplicaStatus, ...]


def describe(state: RaftState, now_ms: int) -> QuorumStatus | None:
    """The quorum; None on a replica that does not lead it."""
    role = state.role
    if not isinstance(role, Leader):
        return None
    local = state.local.key
    known = {
        key: ReplicaStatus(key, progress.end_offset, progress.last_fetch_ms, progress.last_caught_up_ms)
        for key, progress in role.progress.items()
    }
    own = ReplicaStatus(local, state.log.end_offset, now_ms, now_ms)
    voting = [voter.key for voter in state.log.voters.voters.values()]
    silent = Progress()
    voters = tuple(
        own._replace(key=key)
        if key.matches(local)
        else known.get(
            key, ReplicaStatus(key, silent.end_offset, silent.last_fetch_ms, silent.last_caught_up_ms)
        )
        for key in voting
    )
    observers = [
        status
        for key, status in known.items()
        if key not in voting and status.last_fetch_ms > now_ms - OBSERVER_SESSION_MS
    ]
    if not state.log.voters.is_voter(local):
        observers.insert(0, own)
    high_watermark = -1 if role.high_watermark is None else role.high_watermark
    return QuorumStatus(local.node_id, role.epoch, high_watermark, voters, tuple(observers))


def is_led(state: RaftState, now_ms: int) -> bool:
    """Whether a replica leads, or its leader answers it. One that has not answered yet does not count."""
    role = state.role
    return isinstance(role, Leader) or (isinstance(role, Follower) and role.hears_leader(now_ms))


def describe_leaderless(state: RaftState, fetch_ms: int, heard_ms: int) -> QuorumStatus:
    """The quorum as a replica that is not led knew it at `heard_ms`.

    Only this replica has times: `fetch_ms` as its last fetch, and `heard_ms` as when it last caught up.
    """
    role = state.role
    local, log = state.local.key, state.log
    own = ReplicaStatus(local, log.end_offset, fetch_ms, heard_ms)
    voters = tuple(
        own._replace(key=voter.key) if voter.key.matches(local) else ReplicaStatus(voter.key, -1, -1, -1)
        for voter in log.voters.voters.values()
    )
    high_watermark = -1 if state.high_watermark is None else state.high_watermark
    observers = () if log.voters.is_voter(local) else (own,)
    return QuorumStatus(NO_LEADER, role.epoch, high_watermark, voters, observers)


def with_times_later(status: QuorumStatus, by_ms: int) -> QuorumStatus:
    """The same quorum with times moved by `by_ms`; times of -1 stay."""

    def later(replicas: tuple[ReplicaStatus, ...]) -> tuple[ReplicaStatus, ...]:
        return tuple(
            replica._replace(
                last_fetch_ms=replica.last_fetch_ms + by_ms if replica.last_fetch_ms >= 0 else -1,
                last_caught_up_ms=replica.last_caught_up_ms + by_ms if replica.last_caught_up_ms >= 0 else -1,
            )
            for replica in replicas
        )

    return status._replace(voters=later(status.voters), observers=later(status.observers))
