"""How many replicas of a partition have to be in sync, for its leader, the controller and the doctor."""

from __future__ import annotations


def effective_min_isr(min_insync_replicas: int, replication_factor: int) -> int:
    """`min.insync.replicas`, but at most all replicas, as in Apache Kafka."""
    return min(min_insync_replicas, replication_factor)
