"""The partitions that a fetch waits for, kept from one plan to the next.

A parked fetch is planned again each time it is woken. A settled partition stays settled until its log moves.

A follower fetches all of its partitions, perhaps ten thousand, again and again, in a session whose requests
name only changes. The session keeps the settled partitions, and listens to their logs: the next fetch plans
only partitions that it names, that have moved, or that had records. All others cost nothing. A parked fetch
of the session watches `KeptWaits` like a single log. Every `Fetching.quiet_ms` all partitions are planned, so
that each sees that its follower lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.apis.fetching.replica import Follower
    from pykafka_broker.apis.ports.partitions import HeldPartition
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.state import LogState


class Wanted(Protocol):
    """The request of a fetch for one partition."""

    fetch_offset: int
    max_bytes: int

    def knows(self, state: LogState) -> bool:
        """Whether the reader was told the offsets in `state`."""
        ...


class Waited(NamedTuple):
    """A partition that a fetch waits for, and its leader epoch when it was planned."""

    wanted: Wanted
    log: PartitionLog
    partition: HeldPartition
    leader_epoch: int

    @property
    def has_news(self) -> bool:
        """Whether there is an error to report, or a new leader epoch."""
        state = self.log.state
        return (
            state.closed
            or state.offline is not None
            or self.wanted.fetch_offset < state.log_start_offset
            or self.partition.leader_epoch != self.leader_epoch
        )

    def has_nothing(self, limit: Limit) -> bool:
        """Whether there is nothing to read, and nothing to tell."""
        state = self.log.state
        at_end = self.wanted.fetch_offset >= state.limit_offset(limit)
        return at_end and self.wanted.knows(state) and not self.has_news

    def readable_bytes(self, limit: Limit) -> int:
        """About how many bytes there are to read now, at most the partition's `max_bytes`."""
        readable = self.log.reader.available_bytes(self.wanted.fetch_offset, limit)
        return min(readable, self.wanted.max_bytes)


class Waits:
    """The partitions that a fetch waits for, from one plan to the next; call `moved` when a log moves."""

    __slots__ = ("by_log", "limit", "settled")

    def __init__(self, limit: Limit) -> None:
        #: The limit of the reader.
        self.limit = limit
        #: Partitions without records or news until their logs move: they are not planned again.
        self.settled: dict[Wanted, Waited] = {}
        #: All partitions.
        self.by_log: dict[PartitionLog, Waited] = {}

    def moved(self, log: PartitionLog) -> Waited | None:
        """Have the partition of a log that moved planned again; returns that partition."""
        waited = self.by_log.get(log)
        if waited is not None:
            self.settled.pop(waited.wanted, None)
        return waited

    def told(self, log: PartitionLog) -> None:
        """The reader was told the offsets of this log: settle its partition, unless it has moved since."""
        waited = self.by_log.get(log)
        if waited is not None and waited.has_nothing(self.limit):
            self.settled[waited.wanted] = waited


class KeptWaits:
    """What the session of a follower keeps from one fetch to the next; it listens to the logs."""

    __slots__ = ("_follower", "_logs", "_until_ms", "on_advance", "ready", "waits")

    def __init__(self, waits: Waits, follower: Follower, until_ms: int) -> None:
        self.waits = waits
        self.on_advance: list[Callable[..., Any]] = []
        #: Called with a log that moves while a fetch is parked: whether that ends the wait.
        self.ready: Callable[[PartitionLog], object] | None = None
        self._follower = follower
        self._until_ms = until_ms
        #: Logs by the identity of their states.
        self._logs: dict[int, PartitionLog] = {}
        self.listen()

    def is_of(self, follower: Follower, now_ms: int) -> bool:
        """Whether a fetch of this follower may use these waits: with the same epoch, before `until_ms`."""
        return follower == self._follower and now_ms < self._until_ms

    def named(self, wanted: Wanted) -> None:
        """Have this partition planned again: the session's next fetch names it."""
        self.waits.settled.pop(wanted, None)

    def listen(self) -> None:
        """Listen to the logs of partitions that were planned for the first time."""
        by_log, moved = self.waits.by_log, self._moved
        if len(by_log) == len(self._logs):
            return  # partitions are only added, never removed
        for log in by_log:
            if id(log.state) not in self._logs:
                self._logs[id(log.state)] = log
                log.on_advance.append(moved)

    def close(self) -> None:
        """Stop listening to the logs, and wake a parked fetch to plan all partitions."""
        for log in self._logs.values():
            log.on_advance.remove(self._moved)
        self._logs = {}
        self.waits.settled.clear()
        self._wake()

    def _moved(self, state: Any) -> None:
        log = self._logs.get(id(state))
        if log is None:  # the log has moved to another directory
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
