"""How far the replicas are, as their leader knows: the high watermark, and the check of the quorum.

Only voters count. The leader counts with the offset that it has flushed, and only if the newest voters
include it.
"""

from __future__ import annotations

from pykafka_broker.raft.core.quorum import ReplicaKey, majority_offset
from pykafka_broker.raft.core.roles import Leader, Progress
from pykafka_broker.raft.core.turn import Turn

#: After this time without a fetch the leader forgets an observer, as in Kafka.
OBSERVER_SESSION_MS = 300_000
#: The most observers that a leader remembers.
MAX_REPLICAS = 1_000


def note_fetch(turn: Turn, replica: ReplicaKey, offset: int) -> None:
    """A replica has everything below `offset` on its disk."""
    role = turn.role
    if not isinstance(role, Leader):
        return
    key = key_among_voters(turn, replica)
    end_offset = turn.log.end_offset
    before = role.progress.get(key, Progress())
    caught_up_ms = before.last_caught_up_ms
    if offset >= end_offset:
        caught_up_ms = turn.now_ms
    elif 0 < before.leader_end_offset <= offset:
        caught_up_ms = max(before.last_fetch_ms, caught_up_ms)
    progress = {**role.progress, key: Progress(offset, turn.now_ms, caught_up_ms, end_offset)}
    turn.role = role._replace(progress=_without_the_gone(turn, progress))
    hear_voter(turn, replica)
    move_high_watermark(turn)


def key_among_voters(turn: Turn, replica: ReplicaKey) -> ReplicaKey:
    """The key of the replica's entry among the voters, which has no directory with kraft.version 0."""
    voter = turn.voters.voters.get(replica.node_id)
    return voter.key if voter is not None and voter.key.matches(replica) else replica


def _without_the_gone(turn: Turn, progress: dict[ReplicaKey, Progress]) -> dict[ReplicaKey, Progress]:
    oldest_ms = turn.now_ms - OBSERVER_SESSION_MS
    if len(progress) <= MAX_REPLICAS and all(known.last_fetch_ms > oldest_ms for known in progress.values()):
        return progress
    voting = {voter.key for voter in turn.voters.voters.values()}
    observers = [
        key for key, known in progress.items() if key not in voting and known.last_fetch_ms > oldest_ms
    ]
    observers.sort(key=lambda key: progress[key].last_fetch_ms)
    kept = voting.union(observers[-MAX_REPLICAS:])
    return {key: known for key, known in progress.items() if key in kept}


def move_high_watermark(turn: Turn) -> None:
    """Commit the records that a majority has, once they include a record of the leader's own epoch."""
    role = turn.role
    if not isinstance(role, Leader):
        return
    reached = majority_offset(end_offsets(turn, role))
    if reached > role.start_offset and reached > (role.high_watermark or 0):
        turn.role = role._replace(high_watermark=reached)
        turn.commit(reached)


def end_offsets(turn: Turn, role: Leader) -> list[int]:
    """Where the log of each voter is known to end on its disk."""
    unknown = Progress()
    return [
        turn.log.flushed_offset
        if voter.key.matches(turn.local.key)
        else role.progress.get(voter.key, unknown).end_offset
        for voter in turn.voters.voters.values()
    ]


def hear_voter(turn: Turn, replica: ReplicaKey) -> None:
    """A replica has fetched. When a majority has fetched, restart the check-quorum timer."""
    role = turn.role
    if not isinstance(role, Leader) or not turn.voters.is_voter(replica):
        return
    heard = role.heard | {replica.node_id}
    needed = len(turn.voters.voters) // 2 + (0 if turn.is_voter else 1)
    if len(heard & turn.voters.voters.keys()) < needed:
        turn.role = role._replace(heard=heard)
        return
    deadline_ms = turn.now_ms + turn.settings.check_quorum_timeout_ms
    turn.role = role._replace(heard=frozenset(), check_quorum_deadline_ms=deadline_ms)


def is_caught_up(turn: Turn, replica: ReplicaKey) -> bool:
    """Whether a replica has reached the end of the log once, and has fetched within the last hour."""
    role = turn.role
    known = role.progress.get(replica) if isinstance(role, Leader) else None
    return (
        known is not None and known.last_caught_up_ms >= 0 and known.last_fetch_ms > turn.now_ms - 3_600_000
    )


def successors(turn: Turn, role: Leader) -> tuple[ReplicaKey, ...]:
    """The other voters, the one with the longest log first."""
    unknown = Progress()
    keys = [voter.key for voter in turn.voters.others(turn.node_id)]
    return tuple(sorted(keys, key=lambda key: -role.progress.get(key, unknown).end_offset))
