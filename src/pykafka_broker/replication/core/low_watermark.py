"""The low watermark: the offset below which every replica on a live broker has deleted its records."""

from __future__ import annotations

from collections.abc import Container

from pykafka_broker.replication.core.state import Leadership


def low_watermark(leadership: Leadership, log_start_offset: int, live: Container[int]) -> int:
    """The least log start offset of the leader and its followers on `live` brokers.

    It is -1 while one of them has not fetched in this leader epoch.
    """
    return min(
        [log_start_offset]
        + [
            follower.log_start_offset
            for replica_id, follower in leadership.followers.items()
            if replica_id in live
        ]
    )
