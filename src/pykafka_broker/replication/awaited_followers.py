"""Short waits for followers that have not yet fetched from a new leader here.

A follower fixes the partitions of a fetch when it sends it. While its fetch waits here for records of other
partitions, it cannot ask for a partition that this node now leads. The wait may take
`replica.fetch.wait.max.ms`, 500 ms by default, and nothing of that partition is committed meanwhile. So a new
leadership ends the waits of its followers. A follower that has not fetched since then waits at most
`BRIEF_WAIT_MS`, because it may hear of the leadership later than this node. This ends after `PATIENCE_MS`. A
leader of Apache Kafka lets its followers wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pykafka_broker.machine.clock import Clock
from pykafka_broker.replication.partition import Partition

#: The longest wait of a follower that is awaited.
BRIEF_WAIT_MS = 20
#: How long a follower is awaited in a partition; it may be gone.
PATIENCE_MS = 1_000


class NewLeadership(Protocol):
    """A partition that this node has begun to lead."""

    leader_epoch: int

    @property
    def awaited(self) -> Iterable[int]:
        """The followers in sync that have not fetched in this leader epoch; none if it is not led here."""
        ...


class Moves:
    """The new leaderships that await a follower; its parked fetch watches them like a log."""

    __slots__ = ("on_advance",)

    def __init__(self) -> None:
        self.on_advance: list[Callable[..., Any]] = []


class AwaitedFollowers:
    """Notes the partitions that this node leads, and limits the waits of followers. Event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: By follower: the end of the time, the partition and the leader epoch in which it is awaited.
        self._awaited: dict[int, deque[tuple[int, NewLeadership, int]]] = {}
        self._moves: dict[int, Moves] = {}

    def moves(self, replica_id: int) -> Moves:
        """The `Moves` whose callbacks are called when a leadership begins that awaits this follower."""
        return self._moves.setdefault(replica_id, Moves())

    def wait_ms(self, replica_id: int, max_wait_ms: int) -> int:
        """How long a fetch of this follower may wait: at most `BRIEF_WAIT_MS` if it is awaited."""
        awaited = self._awaited.get(replica_id)
        if awaited is None:
            return max_wait_ms
        now_ms = self._clock.monotonic_ms()
        while awaited:
            until_ms, partition, leader_epoch = awaited[0]
            if (
                now_ms < until_ms
                and partition.leader_epoch == leader_epoch
                and replica_id in partition.awaited
            ):
                return min(max_wait_ms, BRIEF_WAIT_MS)
            awaited.popleft()
        del self._awaited[replica_id]
        return max_wait_ms

    # -- roles of this node ----------------------------------------------------------------------------------

    def lead(self, partition: NewLeadership) -> None:
        """Await the followers that are in sync."""
        until_ms = self._clock.monotonic_ms() + PATIENCE_MS
        for replica_id in partition.awaited:
            is_first = replica_id not in self._awaited
            self._awaited.setdefault(replica_id, deque()).append(
                (until_ms, partition, partition.leader_epoch)
            )
            if is_first and replica_id in self._moves:
                for moved in tuple(self._moves[replica_id].on_advance):
                    moved()

    def follow(self, partition: Partition, leader: int) -> None:
        """Nothing to do: `resign` has ended the leadership."""

    def resign(self, partition: Partition) -> None:
        """Nothing to do: the change of the leader epoch ends the waiting."""
