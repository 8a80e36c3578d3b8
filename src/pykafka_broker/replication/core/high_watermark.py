"""The high watermark: the offset below which every replica that counts has the log."""

from __future__ import annotations

from pykafka_broker.replication.core.in_sync import is_about_to_join, is_under_min_isr
from pykafka_broker.replication.core.state import UNKNOWN_OFFSET, Leadership, Log


def high_watermark(leadership: Leadership, log: Log, local_offset: int, now_ms: int) -> int:
    """Return the high watermark: never below the old one, never above the log end of a replica in sync.

    `local_offset` is this node's own: the log end offset or, during a sync of `flush.messages`, the synced
    offset. The maximal ISR counts, because the controller may already have made the change that the leader
    has asked for. The high watermark does not move while fewer replicas than min.insync.replicas are in sync
    (KIP-966).
    """
    isr, offset = leadership.isr, local_offset
    in_sync = isr.committed if isr.proposed is None else isr.maximal
    for replica_id, follower in leadership.followers.items():
        if follower.log_end_offset < offset and (
            replica_id in in_sync
            or is_about_to_join(follower, log.log_end_offset, now_ms, leadership.lag_time_max_ms)
        ):
            offset = follower.log_end_offset
    if offset <= log.high_watermark or is_under_min_isr(leadership):
        return log.high_watermark
    return offset


def commits_at_once(leadership: Leadership) -> bool:
    """Whether records are committed as soon as they are appended: no follower is in sync, or about to be."""
    return (
        leadership.isr.maximal == {leadership.node_id}
        and not is_under_min_isr(leadership)
        and all(follower.log_end_offset == UNKNOWN_OFFSET for follower in leadership.followers.values())
    )
