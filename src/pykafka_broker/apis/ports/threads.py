"""Work in threads: file work that can stall, and reads that may have to wait for a disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pykafka_broker.log.partition.partition_log import PartitionLog

Result = TypeVar("Result")
Read = TypeVar("Read", covariant=True)


class Threads(Protocol):
    """The worker threads of this node."""

    def run_blocking(self, function: Callable[[], Result]) -> Awaitable[Result]:
        """Run file work that can stall in a worker thread."""
        ...


class Reading(Protocol[Read]):
    """A read that a thread carries out; it can be awaited."""

    def done(self) -> bool: ...

    def result(self) -> Read:
        """What was read; raises what the read has raised."""
        ...

    def __await__(self) -> Generator[Any, None, Read]: ...


class ColdReads(Protocol):
    """Reads that the page cache may not be able to serve."""

    def run(self, log: PartitionLog, read: Callable[[], Result]) -> Reading[Result]:
        """Read what of a log may have to come from its disk, in a thread for that disk."""
        ...

    def first_done(self, reads: Collection[Any], until_ms: int) -> Awaitable[None]:
        """Return when one of these reads has ended, or at `until_ms`."""
        ...

    def give_up(self, log: PartitionLog, read: Any) -> None:
        """No fetch waits for a read any more. It goes on, and when it ends the log is said to have moved."""
        ...

    def is_late(self, log: PartitionLog) -> bool:
        """Whether a read of the log was given up and goes on: its disk is not to be waited for."""
        ...
