"""The port to the purgatory, in which requests are parked until a partition's offsets move."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import ClientConnection
    from pykafka_broker.log.partition.partition_log import PartitionLog


class Purgatory(Protocol):
    """Parks handlers, and wakes them."""

    #: Produce requests that wait for followers or syncs, and the partitions for which they wait.
    producers: int
    produced_partitions: int

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
