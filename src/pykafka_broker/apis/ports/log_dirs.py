"""The log directories of this node, the logs in them, and moves between them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.log.disk.directories import LogDir, LogDirs
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.protocol.errors import ErrorCode
    from pykafka_broker.protocol.topic_partition import PartitionKey


class HostedLogs(Protocol):
    """All logs of this node, led here or not."""

    @property
    def dirs(self) -> LogDirs:
        """The log directories."""
        ...

    def space(self, log_dir: LogDir) -> tuple[int, int]:
        """(total bytes, bytes a process may still use) of the directory's volume. May wait for the disk.

        Raises:
            OSError: the volume cannot be asked.
        """
        ...

    @property
    def logs(self) -> Mapping[PartitionKey, PartitionLog]:
        """Logs by topic and partition, without copies that are moving to another directory."""
        ...

    def logs_in(self, log_dir: LogDir) -> Iterable[PartitionLog]:
        """The logs in one directory, including copies that are moving into it."""
        ...


class LogDirMoves(Protocol):
    """Moves replicas between the log directories of this node."""

    def alter(self, topic: str, partition: int, path: str) -> Awaitable[ErrorCode]:
        """Begin to move a partition to another log directory, or have a future replica created there."""
        ...
