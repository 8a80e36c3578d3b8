"""All fetchers of this node: for each broker that leads partitions held here, up to `num.replica.fetchers`.

`ReplicaManager` tells which partitions this node follows. A fetcher starts with its first partition and ends
with its last. A partition stays with one fetcher of its leader, chosen as in Apache Kafka.
"""

from __future__ import annotations

import asyncio

from pykafka_broker.protocol.java_hash import string_hash
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition
from pykafka_broker.replication.replica_fetcher import (
    FetcherPorts,
    FetcherSettings,
    Key,
    ReplicaFetcher,
    key_of,
)


class ReplicaFetchers:
    """The `Roles` that follow. Event loop only."""

    def __init__(self, ports: FetcherPorts, settings: FetcherSettings, fetchers_per_leader: int) -> None:
        self._ports = ports
        self._settings = settings
        self._fetchers_per_leader = fetchers_per_leader
        #: By leader and fetcher id.
        self.running: dict[tuple[int, int], ReplicaFetcher] = {}
        self._tasks: dict[ReplicaFetcher, asyncio.Task[None]] = {}
        #: Fetchers that are being stopped, in this order.
        self._ending: dict[asyncio.Task[None], None] = {}
        self._followed: dict[Key, tuple[Partition, ReplicaFetcher, int]] = {}
        self._is_stopped = False

    def lead(self, partition: LeadingReplica) -> None:
        """Note that appends of a leader leave no gaps in the offsets."""
        partition.log.density.ends_copying()

    def follow(self, partition: Partition, leader: int) -> None:
        """Fetch a partition from broker `leader`."""
        if self._is_stopped:
            return
        fetcher = self._fetcher(leader, self._fetcher_id(partition))
        self._followed[key_of(partition)] = partition, fetcher, leader
        fetcher.follow(partition)

    def resign(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        followed = self._followed.pop(key_of(partition), None)
        if followed is not None:
            followed[1].leave(partition)
            # In a new epoch the same partition may come back at once.
            asyncio.get_running_loop().call_soon(self._end_idle)

    def resize(self, fetchers_per_leader: int) -> None:
        """`num.replica.fetchers` has changed: reassign the partitions to fetchers."""
        if fetchers_per_leader == self._fetchers_per_leader:
            return
        self._fetchers_per_leader = fetchers_per_leader
        for partition, _, leader in tuple(self._followed.values()):
            self.resign(partition)
            self.follow(partition, leader)

    def throttle(self, bytes_per_second: int) -> None:
        """Set the rate limit for throttled replicas."""
        self._ports.throttled_rate.bytes_per_second = bytes_per_second

    async def stop(self) -> None:
        """Stop fetching, and return when all fetchers have ended."""
        self._is_stopped = True
        for fetcher in tuple(self._tasks):
            self._end(fetcher)
        while self._ending:
            await asyncio.wait(tuple(self._ending))

    def _fetcher_id(self, partition: Partition) -> int:
        number = (31 * string_hash(partition.topic) + partition.partition) & 0xFFFFFFFF
        signed = number - (1 << 32) if number & 0x80000000 else number
        return (0 if signed == -(1 << 31) else abs(signed)) % self._fetchers_per_leader

    def _fetcher(self, leader: int, fetcher_id: int) -> ReplicaFetcher:
        fetcher = self.running.get((leader, fetcher_id))
        if fetcher is None:
            fetcher = ReplicaFetcher(leader, fetcher_id, self._ports, self._settings)
            self.running[leader, fetcher_id] = fetcher
            self._tasks[fetcher] = asyncio.get_running_loop().create_task(fetcher.run())
        return fetcher

    def _end_idle(self) -> None:
        for place, fetcher in tuple(self.running.items()):
            if fetcher.is_idle:
                del self.running[place]
                self._end(fetcher)

    def _end(self, fetcher: ReplicaFetcher) -> None:
        task = self._tasks.pop(fetcher, None)
        if task is not None:
            task.cancel()
            self._ending[task] = None
            task.add_done_callback(self._ending.pop)
