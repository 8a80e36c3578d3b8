"""A leader's state of its partition: its replicas, the ISR, and the progress of each follower.

The offsets of the log are not part of this state: events bring them (`LogOffsets`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pykafka_broker.system.named_tuple import NamedTuple

#: The log end offset of a follower that has not fetched in this leader epoch.
UNKNOWN_OFFSET = -1
#: The broker epoch in a fetch that names none.
NO_BROKER_EPOCH = -1


class LogOffsets(NamedTuple):
    """The offsets of the leader's own log."""

    high_watermark: int
    log_end_offset: int


class Log(Protocol):
    """The leader's own log, with its present offsets."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...


class FollowerProgress(NamedTuple):
    """The progress of a follower in this leader epoch, by its fetches."""

    #: The offset of its last fetch: it has everything below.
    log_end_offset: int = UNKNOWN_OFFSET
    #: The leader's log end offset at the follower's last fetch, and the time of that fetch.
    leader_end_offset: int = UNKNOWN_OFFSET
    fetched_ms: int | None = None
    #: When the follower last had everything that the leader had.
    caught_up_ms: int | None = None
    #: The epoch of the registration with which its broker fetched last.
    broker_epoch: int = NO_BROKER_EPOCH
    #: Whether it may join the ISR: it has fetched, and its broker is active and registered in the epoch that
    #: the fetch named, if any.
    is_eligible: bool = False
    #: Where its log starts.
    log_start_offset: int = UNKNOWN_OFFSET


class Isr(NamedTuple):
    """The in-sync replicas: those of the metadata, and those the controller has been asked for."""

    committed: tuple[int, ...]
    #: None while no change is asked for.
    proposed: tuple[int, ...] | None = None

    @property
    def maximal(self) -> frozenset[int]:
        """Every replica that may be in the ISR, with or without the proposed change."""
        return frozenset(self.committed) | frozenset(self.proposed or ())


class Leadership(NamedTuple):
    """One partition, led here in one epoch."""

    node_id: int
    leader_epoch: int
    #: The log end offset when this epoch began.
    epoch_start_offset: int
    partition_epoch: int
    isr: Isr
    #: Every assigned replica but this one, by broker id.
    followers: Mapping[int, FollowerProgress] = {}
    #: `min.insync.replicas` of the topic.
    min_insync_replicas: int = 1
    #: `replica.lag.time.max.ms`
    lag_time_max_ms: int = 30_000
