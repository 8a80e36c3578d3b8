"""The logs that one broker has: those that are served, and those being filled to replace one.

Changed on the event loop only. Other threads may iterate: they see the logs as of the iteration's start.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.manager.future_log import LogMove
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.topic_partition import PartitionKey


class LogRegistry:
    """The logs of one broker by topic and partition."""

    __slots__ = ("moves", "orphans", "served")

    def __init__(self) -> None:
        self.served: dict[PartitionKey, PartitionLog] = {}
        #: Moves under way: each fills a future log in another directory.
        self.moves: dict[PartitionKey, LogMove] = {}
        #: Future logs whose source the start did not find; not served.
        self.orphans: dict[PartitionKey, PartitionLog] = {}

    def all(self) -> Iterator[PartitionLog]:
        """Every log: served, future and orphaned. Any thread."""
        yield from list(self.served.values())
        for move in list(self.moves.values()):
            yield move.future
        yield from list(self.orphans.values())

    def in_dir(self, log_dir: LogDir) -> list[PartitionLog]:
        """Every log that lies in a directory. Any thread."""
        return [log for log in self.all() if directory_name(log.directory) == log_dir.path]

    def clear(self) -> None:
        """Forget every log."""
        self.served, self.moves, self.orphans = {}, {}, {}
