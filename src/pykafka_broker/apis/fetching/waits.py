"""The partitions that a fetch waits for, as one plan leaves them to the next.

A parked fetch is planned again each time it is woken. What was settled stays so until its log moves.

A follower of ten thousand partitions asks for all of them again and again, in a session whose request names
what has changed. The session keeps what was settled, and listens to the logs of its partitions: the next
fetch plans those that are named, that have moved, or that had something to read or to tell. All others cost
nothing. A parked fetch of the session watches what is kept like a single log. From time to time all are
planned, so that each hears that its follower lives (`Fetching.quiet_ms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.apis.fetching.replica import Follower
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.log.partition.partition_log import PartitionLog


class Wanted(Protocol):
    """What a fetch asks for in one partition."""

    fetch_offset: int
    max_bytes: int


class Led(Protocol):
    """A partition that somebody leads."""

    leader_epoch: int


class Waited(NamedTuple):
    """A partition that a fetch waits for, and who led it when it was planned."""

    wanted: Wanted
    log: PartitionLog
    partition: Led
    leader_epoch: int

    @property
    def has_news(self) -> bool:
        """There is an error to tell, or another broker may lead."""
        state = self.log.state
        return (
            state.closed
            or state.offline is not None
            or self.wanted.fetch_offset < state.log_start_offset
            or self.partition.leader_epoch != self.leader_epoch
        )

    def readable_bytes(self, limit: Limit) -> int:
        """About how much there is to read now, up to the partition's own limit."""
        readable = self.log.reader.available_bytes(self.wanted.fetch_offset, limit)
        return min(readable, self.wanted.max_bytes)


class Waits:
    """The partitions that a fetch waits for, from one of its plans to the next; told which logs `moved`."""

    __slots__ = ("by_log", "limit", "settled")

    def __init__(self, limit: Limit) -> None:
        #: The limit of the reader.
        self.limit = limit
        #: Partitions with nothing to read or to tell until their logs move: they are not planned again.
        self.settled: dict[Wanted, Waited] = {}
        #: All partitions.
        self.by_log: dict[PartitionLog, Waited] = {}

    def moved(self, log: PartitionLog) -> Waited | None:
        """A log has told of something, so its partition is to be planned again; that partition."""
        waited = self.by_log.get(log)
        if waited is not None:
            self.settled.pop(waited.wanted, None)
        return waited


class KeptWaits:
    """What the session of a follower keeps from one fetch to the next; it listens to the logs."""

    __slots__ = ("_follower", "_logs", "_until_ms", "on_advance", "ready", "waits")

    def __init__(self, waits: Waits, follower: Follower, until_ms: int) -> None:
        self.waits = waits
        self.on_advance: list[Callable[..., Any]] = []
        #: Asked when a log moves while a fetch is parked, until it is woken: whether that ends the wait.
        self.ready: Callable[[PartitionLog], object] | None = None
        self._follower = follower
        self._until_ms = until_ms
        #: By the identity of their states.
        self._logs: dict[int, PartitionLog] = {}
        self.listen()

    def is_of(self, follower: Follower, now_ms: int) -> bool:
        """Whether a fetch of this follower may go on from here: all partitions have heard of it lately."""
        return follower == self._follower and now_ms < self._until_ms

    def named(self, wanted: Wanted) -> None:
        """The session's next fetch asks for something else in this partition."""
        self.waits.settled.pop(wanted, None)

    def listen(self) -> None:
        """Listen to the logs of partitions that were planned for the first time."""
        by_log, moved = self.waits.by_log, self._moved
        if len(by_log) == len(self._logs):
            return  # partitions are added, and never taken away
        for log in by_log:
            if id(log.state) not in self._logs:
                self._logs[id(log.state)] = log
                log.on_advance.append(moved)

    def close(self) -> None:
        """Listen to the logs no more; a parked fetch has to look for itself."""
        for log in self._logs.values():
            log.on_advance.remove(self._moved)
        self._logs = {}
        self.waits.settled.clear()
        self._wake()

    def _moved(self, state: Any) -> None:
        log = self._logs.get(id(state))
        if log is None:  # it has gone to another directory
            self.waits.settled.clear()
            self._wake()
        elif self.ready is None:
            self.waits.moved(log)
        elif self.ready(log):
            self._wake()

    def _wake(self) -> None:
        self.ready = None
        for callback in tuple(self.on_advance):
            callback(self)
