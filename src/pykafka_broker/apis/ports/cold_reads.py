"""Reads in threads, because they may have to wait for a disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pykafka_broker.coordinator import ports

if TYPE_CHECKING:
    from pykafka_broker.log.partition.partition_log import PartitionLog

Result = TypeVar("Result")
Read = TypeVar("Read", covariant=True)


class Reading(Protocol[Read]):
    """A read that a thread carries out; it can be awaited."""

    def done(self) -> bool: ...

    def result(self) -> Read:
        """The result of the read; raises the exception it ended with."""
        ...

    def __await__(self) -> Generator[Any, None, Read]: ...


class ColdReads(ports.ColdReads, Protocol):
    """Reads that may have to wait for a disk: a handler may wait for the first, or give one up."""

    def run(self, log: PartitionLog, read: Callable[[], Result]) -> Reading[Result]:
        """Read from a log in a thread for its disk, because the page cache may not have the bytes."""
        ...

    def first_done(self, reads: Collection[Any], until_ms: int) -> Awaitable[None]:
        """Return when one of these reads has ended, or at `until_ms` (monotonic)."""
        ...

    def give_up(self, log: PartitionLog, read: Any) -> None:
        """Stop waiting for a read. The read continues; its end wakes the handlers parked on the log."""
        ...

    def is_late(self, log: PartitionLog) -> bool:
        """Whether a read of the log was given up and still runs: a fetch should not wait for its disk."""
        ...
