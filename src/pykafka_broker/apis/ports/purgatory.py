"""The port to the purgatory, in which requests are parked until a partition's offsets move."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection
    from pykafka_broker.log.partition.partition_log import PartitionLog


class Delayed(Protocol):
    """Requests of one kind that wait."""

    #: Waits that ended because their time was up.
    expired: int

    def begin(self, places: int) -> None:
        """A request begins to wait for this number of partitions."""
        ...

    def end(self, places: int) -> None:
        """Its wait has ended."""
        ...


class Purgatory(Protocol):
    """Parks handlers, and wakes them."""

    #: Fetches of consumers and of followers whose time was up.
    expired_consumers: int
    expired_followers: int

    @property
    def produces(self) -> Delayed:
        """Produce requests that wait for followers or syncs."""
        ...

    @property
    def deletions(self) -> Delayed:
        """DeleteRecords requests that wait for followers."""
        ...

    @property
    def share_fetches(self) -> Delayed:
        """Share fetches that wait for records, or for the locks of other fetches."""
        ...

    def wait(
        self,
        logs: Iterable[PartitionLog],
        until_ms: int,
        connection: ClientConnection,
        ready: Callable[[PartitionLog], bool] | None = None,
    ) -> Awaitable[bool]:
        """Park until one of `logs` moves (True), or `until_ms` (monotonic), or the broker stops (False).

        `ready` is called at each move with the log that moved; only a true result ends the wait.

        Raises:
            Disconnected: the peer of `connection` went away; the handler ends.
        """
        ...
