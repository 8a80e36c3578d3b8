"""The nearest replica for a consumer (KIP-392): Kafka's RackAwareReplicaSelector."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.replication.core.state import Leadership


def nearest_replica(
    leadership: Leadership, rack: str, racks: Mapping[int, str | None], fetch_offset: int
) -> int | None:
    """The follower in `rack` for a consumer there that reads from `fetch_offset` on; None: the leader.

    `racks` has the racks of the brokers that the consumer can reach. The leader is preferred in its own rack.
    Otherwise the follower with the highest log end offset is chosen, among equals the one that caught up
    last. Only in-sync followers that have the offset count: one that lags would send the consumer back each
    time.
    """
    if racks.get(leadership.node_id) == rack:
        return None
    candidates = [
        (follower.log_end_offset, follower.caught_up_ms or 0, replica_id)
        for replica_id, follower in leadership.followers.items()
        if replica_id in leadership.isr.committed
        and racks.get(replica_id) == rack
        and 0 <= follower.log_start_offset <= fetch_offset <= follower.log_end_offset
    ]
    return max(candidates)[2] if candidates else None
