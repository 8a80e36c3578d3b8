"""Which faults a seed has, and how many: seeds with a few kinds each differ more than seeds with all."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple


class Profile(NamedTuple):
    """Probabilities are per packet; intervals are means, in ms; 0: never.

    With `clock_drift` 0.1 the clocks of nodes are up to a tenth too fast or too slow.
    """

    brokers: int
    replication_factor: int
    partitions: int
    producers: int
    transactional: int
    #: Producers that do not wait for an answer before they send the next batch.
    ahead: int
    #: Of each of the two groups with members.
    members: int
    delay_ms: int
    drop: float
    flush_ms: int
    pause_between_ms: int
    kill_ms: int
    power_ms: int
    pause_ms: int
    partition_ms: int
    stop_ms: int
    clock_drift: float
    min_insync: int = 2
    #: With few, a follower takes many fetches to catch up.
    replica_fetch_bytes: int = 1 << 20
    #: `replica.lag.time.max.ms`: a follower that takes longer leaves the ISR. Shorter than the pauses.
    replica_lag_ms: int = 30_000
    #: How often an administrator moves a partition, elects a preferred leader, or changes a configuration.
    change_ms: int = 0
    #: How often a topic is deleted and created again under its name.
    remake_ms: int = 0
    #: How much longer a machine has no power than it is down after other faults.
    longer_down_ms: int = 0
    #: How often the disk of a machine is full for some seconds.
    full_disk_ms: int = 0
    #: 1: as many controllers as brokers, each on a machine of its own.
    separate: int = 0
    #: 1: each broker is in a rack, and consumers read from the replica in theirs (KIP-392).
    racks: int = 0
    #: 1: any live replica may lead the topic. For faults that leave disks as they are and reset connections:
    #: no answer of a leader may reach a client after the election of the next.
    unclean: int = 0
    #: Of the network of `tests/simulation/network.py`, where messages travel alone.
    duplicate: float = 0.0
    very_late: float = 0.0

    @property
    def min_isr(self) -> int:
        """No more than there are replicas."""
        return min(self.min_insync, self.replication_factor)

    def without_faults(self) -> Profile:
        """The same cluster on a quick and reliable network, and machines that stay up."""
        return self._replace(
            delay_ms=min(self.delay_ms, 5),
            drop=0.0,
            flush_ms=min(self.flush_ms, 5),
            kill_ms=0,
            power_ms=0,
            pause_ms=0,
            partition_ms=0,
            stop_ms=0,
            change_ms=0,
            remake_ms=0,
            full_disk_ms=0,
        )


#: Clusters of kinds that no seed draws, as values of their profiles.
OTHERS: Mapping[str, Mapping[str, float]] = {
    "full disks": {"full_disk_ms": 6_000},
    "separate controllers": {"separate": 1},
    "racks": {"racks": 1, "replication_factor": 3},
    "unclean elections": {
        "unclean": 1,
        "replication_factor": 3,
        "min_insync": 1,
        # With few bytes a fetch, a replica is behind when the leader is killed.
        "replica_fetch_bytes": 200,
        "producers": 0,
        "transactional": 0,
        "ahead": 0,
        "members": 0,
        "drop": 0.0,
        "delay_ms": 5,
        "kill_ms": 3_000,
        "power_ms": 0,
        "pause_ms": 0,
        "partition_ms": 0,
        "stop_ms": 0,
        "change_ms": 0,
        "remake_ms": 0,
    },
}


def draw(chance: random.Random) -> Profile:
    """The profile of a seed."""

    def sometimes(probability: float, low: int, high: int) -> int:
        return chance.randint(low, high) if chance.random() < probability else 0

    replication_factor = chance.choice((1, 3, 3, 3))
    drawn = Profile(
        brokers=3,
        replication_factor=replication_factor,
        partitions=chance.choice((1, 2, 3)),
        producers=chance.choice((1, 2)),
        transactional=chance.choice((0, 1, 2)),
        ahead=chance.choice((0, 1)),
        members=chance.choice((0, 1, 2)),
        delay_ms=chance.choice((1, 5, 30)),
        drop=chance.choice((0.0, 0.0, 0.01, 0.05)),
        flush_ms=chance.choice((0, 5, 50)),
        pause_between_ms=chance.choice((100, 400)),
        kill_ms=sometimes(0.7, 3000, 15_000),
        power_ms=sometimes(0.4, 6000, 20_000) if replication_factor > 1 else 0,
        pause_ms=sometimes(0.3, 5000, 15_000),
        partition_ms=sometimes(0.5, 4000, 12_000),
        stop_ms=sometimes(0.4, 5000, 15_000),
        clock_drift=chance.choice((0.0, 0.05)),
        replica_fetch_bytes=chance.choice((200, 1 << 20)),
    )
    if drawn.pause_ms:
        drawn = drawn._replace(replica_lag_ms=3000)
    if drawn.power_ms and not drawn.kill_ms and drawn.replica_fetch_bytes > 200:
        # No other is killed meanwhile, so that there is a controller to fence it. With fetches of few bytes
        # it would hardly catch up with busy producers again.
        drawn = drawn._replace(longer_down_ms=25_000)
    return drawn
