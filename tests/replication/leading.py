"""Leaderships to decide on: node 1 leads, brokers 2 and 3 follow."""

from __future__ import annotations

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.replication.core.events import FollowerFetched
from pykafka_broker.replication.core.state import Leadership, LogOffsets
from pykafka_broker.replication.core.transitions import ReplicationSettings, leadership_of, transition

LEADER = 1
NOW_MS = 1_000_000
LAG_MS = 30_000


def registration(
    *isr: int, replicas: tuple[int, ...] = (1, 2, 3), leader_epoch: int = 5, partition_epoch: int = 7
) -> PartitionRegistration:
    return PartitionRegistration(0, replicas, isr, LEADER, leader_epoch, partition_epoch)


def leading(
    *isr: int,
    replicas: tuple[int, ...] = (1, 2, 3),
    min_insync_replicas: int = 1,
    log_end_offset: int = 100,
) -> Leadership:
    """Node 1 as the leader that the metadata has just named, with a log up to `log_end_offset`."""
    settings = ReplicationSettings(min_insync_replicas, LAG_MS)
    return leadership_of(
        None, LEADER, registration(*isr, replicas=replicas), settings, log_end_offset, NOW_MS
    )


def fetched(
    replica_id: int, offset: int, *, at_ms: int = NOW_MS, high_watermark: int = 100, end: int = 100
) -> FollowerFetched:
    """A follower that has everything below `offset`, of a leader whose log ends at `end`."""
    return FollowerFetched(at_ms, replica_id, offset, LogOffsets(high_watermark, end))


def after(leadership: Leadership, *events: FollowerFetched) -> Leadership:
    for event in events:
        leadership = transition(leadership, event).state
    return leadership
