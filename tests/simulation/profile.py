"""Which faults a seed has, and how many: seeds with a few kinds each differ more than seeds with all."""

from __future__ import annotations

import random
from typing import NamedTuple


class Profile(NamedTuple):
    """Probabilities are per message or per step; intervals are means, in ms; 0: never.

    With `clock_drift` 0.1 the clocks of replicas are up to a tenth too fast or too slow.
    """

    voters: int
    observers: int
    kraft_version: int
    delay_ms: int
    drop: float
    duplicate: float
    very_late: float
    flush_ms: int
    append_ms: int
    crash_ms: int
    crash_after_vote: float
    crash_of_new_leader: float
    pause_ms: int
    partition_ms: int
    stop_ms: int
    snapshot_ms: int
    change_ms: int
    empty_disk_ms: int
    damaged_snapshot: float
    clock_drift: float
    auto_join: bool
    #: Before each operation on files, of replicas that have some.
    power_cut: float
    disk_error: float

    def without_faults(self) -> Profile:
        """The same quorum on a quick and reliable network, and machines that stay up."""
        return self._replace(
            delay_ms=min(self.delay_ms, 5),
            drop=0.0,
            duplicate=0.0,
            very_late=0.0,
            flush_ms=min(self.flush_ms, 5),
            crash_ms=0,
            crash_after_vote=0.0,
            crash_of_new_leader=0.0,
            pause_ms=0,
            partition_ms=0,
            stop_ms=0,
            snapshot_ms=0,
            change_ms=0,
            empty_disk_ms=0,
            damaged_snapshot=0.0,
            power_cut=0.0,
            disk_error=0.0,
        )


def draw(chance: random.Random) -> Profile:
    """The profile of a seed."""
    dynamic = chance.random() < 0.6
    voters = chance.choice((1, 2, 3, 3, 3, 4, 5))

    def sometimes(probability: float, low: int, high: int) -> int:
        return chance.randint(low, high) if chance.random() < probability else 0

    return Profile(
        voters=voters,
        observers=chance.choice((0, 1, 1, 2)),
        kraft_version=1 if dynamic else chance.choice((0, 1)),
        delay_ms=chance.choice((2, 10, 30, 200)),
        drop=chance.choice((0.0, 0.0, 0.02, 0.1, 0.3)),
        duplicate=chance.choice((0.0, 0.02, 0.2)),
        very_late=chance.choice((0.0, 0.0, 0.02)),
        flush_ms=chance.choice((0, 5, 50, 300)),
        append_ms=chance.choice((100, 300, 1000)),
        crash_ms=sometimes(0.7, 1500, 10_000),
        crash_after_vote=chance.choice((0.0, 0.0, 0.2)),
        crash_of_new_leader=chance.choice((0.0, 0.0, 0.3)),
        pause_ms=sometimes(0.3, 3000, 10_000),
        partition_ms=sometimes(0.5, 2000, 8000),
        stop_ms=sometimes(0.3, 3000, 10_000),
        snapshot_ms=sometimes(0.5, 1000, 5000),
        change_ms=sometimes(0.7, 1000, 5000),
        empty_disk_ms=sometimes(0.4, 5000, 15_000) if dynamic else 0,
        damaged_snapshot=chance.choice((0.0, 0.3)),
        clock_drift=chance.choice((0.0, 0.1)),
        auto_join=chance.random() < 0.3,
        power_cut=chance.choice((0.0, 0.0, 0.001, 0.01)),
        disk_error=chance.choice((0.0, 0.0, 0.0, 0.001)),
    )
