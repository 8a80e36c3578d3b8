"""The followers in sync, whether they are enough, and the ISR that the leader asks for."""

from __future__ import annotations

from pykafka_broker.cluster.min_isr import effective_min_isr
from pykafka_broker.replication.core.events import FollowerFetched, TimePassed
from pykafka_broker.replication.core.state import FollowerProgress, Leadership


def is_under_min_isr(leadership: Leadership) -> bool:
    """Whether the ISR is smaller than the effective min.insync.replicas."""
    return len(leadership.isr.committed) < _min_isr(leadership)


def is_at_min_isr(leadership: Leadership) -> bool:
    """Whether the ISR is just as large as the effective min.insync.replicas."""
    return len(leadership.isr.committed) == _min_isr(leadership)


def is_max_under_min_isr(leadership: Leadership) -> bool:
    """As `is_under_min_isr`, for the ISR with the replicas that the leader has asked for."""
    return len(leadership.isr.maximal) < _min_isr(leadership)


def _min_isr(leadership: Leadership) -> int:
    return effective_min_isr(leadership.min_insync_replicas, len(leadership.followers) + 1)


def is_cut_off(leadership: Leadership, now_ms: int, patience_ms: int) -> bool:
    """Whether nothing can be committed: an in-sync follower has not fetched for `patience_ms`."""
    return any(
        follower.fetched_ms is None or now_ms - follower.fetched_ms >= patience_ms
        for replica_id, follower in leadership.followers.items()
        if replica_id in leadership.isr.maximal
    )


def awaited_followers(leadership: Leadership) -> list[int]:
    """The followers in sync that have not fetched in this leader epoch."""
    followers = leadership.followers
    return [
        replica_id
        for replica_id in leadership.isr.committed
        if replica_id in followers and followers[replica_id].fetched_ms is None
    ]


def is_caught_up(follower: FollowerProgress, log_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
    """Whether the follower has everything, or had everything within `replica.lag.time.max.ms`."""
    if follower.log_end_offset >= log_end_offset:
        return True
    return follower.caught_up_ms is not None and now_ms - follower.caught_up_ms <= lag_time_max_ms


def is_about_to_join(
    follower: FollowerProgress, log_end_offset: int, now_ms: int, lag_time_max_ms: int
) -> bool:
    """Whether the high watermark waits for a follower outside the ISR, so that the follower can join."""
    return follower.is_eligible and is_caught_up(follower, log_end_offset, now_ms, lag_time_max_ms)


def isr_with(leadership: Leadership, event: FollowerFetched) -> tuple[int, ...] | None:
    """The ISR once the follower that fetched has joined; None if it does not join now.

    It must have reached both the high watermark and the start of the leader epoch: records between the two
    may have been committed before this epoch.
    """
    isr = leadership.isr
    follower = leadership.followers[event.replica_id]
    if isr.proposed is not None or event.replica_id in isr.committed or not follower.is_eligible:
        return None
    if follower.log_end_offset < max(event.log.high_watermark, leadership.epoch_start_offset):
        return None
    return (*isr.committed, event.replica_id)


def isr_without_laggards(leadership: Leadership, event: TimePassed) -> tuple[int, ...] | None:
    """The ISR without the followers that lag; None if none does."""
    isr, lag_time_max_ms = leadership.isr, leadership.lag_time_max_ms
    if isr.proposed is not None:
        return None
    kept = tuple(
        replica_id
        for replica_id in isr.committed
        if (follower := leadership.followers.get(replica_id)) is None
        or is_caught_up(follower, event.log.log_end_offset, event.now_ms, lag_time_max_ms)
    )
    return None if kept == isr.committed else kept
