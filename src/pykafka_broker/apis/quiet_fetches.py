"""Followers that fetch again and again while nothing happens, which costs no time for each partition.

A follower of ten thousand idle partitions asks twice a second for what it has asked for before, in a session
whose request names nothing new. After a fetch that has waited in vain, the session keeps its plan, and a
`QuietLogs` that tells whether any of the logs has moved since. While none has, the next fetches wait for that
one, and their answers are empty. From time to time such a fetch is planned as any other, so that each
partition hears that its follower lives (`Fetching.quiet_ms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafka_broker.log.partition.partition_log import PartitionLog


class QuietLogs:
    """The logs of a fetch that has waited in vain; a parked fetch watches them like a single one.

    `ready` is asked when a log moves: whether that ends the wait.
    """

    __slots__ = ("_logs", "_ready", "_until_ms", "has_moved", "on_advance")

    def __init__(
        self, logs: Sequence[PartitionLog], ready: Callable[[PartitionLog], bool] | None, until_ms: int
    ) -> None:
        #: Something is to be told since: a fetch has to be planned.
        self.has_moved = False
        self.on_advance: list[Callable[..., Any]] = []
        self._logs = {id(log.state): log for log in logs}
        self._ready = ready
        self._until_ms = until_ms
        moved = self._moved
        for log in logs:
            log.on_advance.append(moved)

    def is_quiet(self, now_ms: int) -> bool:
        """Nothing has happened, and the partitions know of the follower's fetches for the time being."""
        return not self.has_moved and now_ms < self._until_ms

    def close(self) -> None:
        """Listen to the logs no more."""
        for log in self._logs.values():
            log.on_advance.remove(self._moved)
        self._logs = {}

    def _moved(self, state: Any) -> None:
        self.has_moved = True
        log = self._logs.get(id(state))  # none if it has gone to another directory
        if self._ready is None or log is None or self._ready(log):
            for callback in tuple(self.on_advance):
                callback(self)
