"""The replica from which a consumer reads best (KIP-392): Kafka's RackAwareReplicaSelector."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.replication.core.state import Leadership


def nearest_replica(
    leadership: Leadership, rack: str, racks: Mapping[int, str | None], fetch_offset: int
) -> int | None:
    """A follower in `rack` for a consumer there that reads from `fetch_offset` on; None: the leader.

    `racks` has the brokers that the consumer can reach, with theirs. The leader is best in its own rack. Else
    it is the follower that has most of the log, and if several have, the one that had all of it last. Only
    followers in sync count that have the offset: a consumer sent to one that lags would come back for ever.
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
