"""The followers that have yet to find a new leader here, and whose fetches are answered soon until they do.

A follower names the partitions of its next fetch when it sends it. One that waits here for records of other
partitions finds out about a new leadership of this node meanwhile, and asks for that partition when its fetch
is answered: after `replica.fetch.wait.max.ms`, half a second by default, in which nothing of the partition is
committed. So a new leadership ends the waits of its followers, and for a moment they wait no longer than
`BRIEF_WAIT_MS`: they may hear of the leadership a little later than this node. Followers of Apache Kafka are
helped as well; a leader of Apache Kafka lets them wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pykafka_broker.machine.clock import Clock
from pykafka_broker.replication.partition import Partition

#: The longest wait of a follower that is awaited.
BRIEF_WAIT_MS = 20
#: So long a follower is awaited in a partition: one that is gone is not worth more.
PATIENCE_MS = 1_000


class NewLeadership(Protocol):
    """A partition that this node has begun to lead."""

    leader_epoch: int

    @property
    def awaited(self) -> Iterable[int]:
        """The followers in sync that have not fetched in this leader epoch; none if it is not led here."""
        ...


class Moves:
    """The leaderships that begin with a follower; a parked fetch of it watches them like a log."""

    __slots__ = ("on_advance",)

    def __init__(self) -> None:
        self.on_advance: list[Callable[..., Any]] = []


class AwaitedFollowers:
    """Told which partitions this node leads, asked how long a follower's fetch may wait. Event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: By follower: until when it is awaited, in which partition and leader epoch.
        self._awaited: dict[int, deque[tuple[int, NewLeadership, int]]] = {}
        self._moves: dict[int, Moves] = {}

    def moves(self, replica_id: int) -> Moves:
        """Moves when a leadership begins in which this follower is awaited."""
        return self._moves.setdefault(replica_id, Moves())

    def wait_ms(self, replica_id: int, max_wait_ms: int) -> int:
        """The time that a fetch of this follower may wait, which allows `max_wait_ms`."""
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
        """Its followers are another broker's."""

    def resign(self, partition: Partition) -> None:
        """As its leader epoch is over, its followers are not awaited any more."""
