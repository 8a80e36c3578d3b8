"""What one partition's log is at this moment: its segments, and the offsets everything else goes by.

    log start offset <= last stable offset <= high watermark <= log end offset

* log end offset: the next offset to assign; moves at append.
* high watermark: what all in-sync replicas have; moves when the caller says so (`advance_high_watermark`);
  consumers see nothing past it.
* last stable offset: the high watermark, or the start of the oldest transaction whose outcome is not below
  it; read-committed consumers see nothing past it.
* log start offset: what retention or DeleteRecords left.

`ReadableLog` reads it, `WritableLog` makes it grow, `PartitionLog` makes it shrink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.names import partition_folder
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.producers import ProducerState, ProducerStates
from pykafka_broker.log.segment.segment import Segment

Limit = Literal["high_watermark", "last_stable", "log_end"]


class LogState:
    """Segments, offsets, producers, and who waits for a change of them. Event loop only."""

    __slots__ = (
        "_active",
        "_config",
        "_environment",
        "_latest_epoch",
        "_roll_ms",
        "closed",
        "directory",
        "epochs",
        "high_watermark",
        "last_stable_offset",
        "log_end_offset",
        "log_start_offset",
        "name",
        "offline",
        "on_advance",
        "partition",
        "producers",
        "segments",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        environment: Environment,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        segments: tuple[Segment, ...],
        log_start_offset: int,
        log_end_offset: int,
        high_watermark: int,
        epochs: LeaderEpochs,
        producers: ProducerStates,
    ) -> None:
        self._environment = environment
        self.directory = directory
        self.topic = topic
        self.partition = partition
        #: As Kafka prints it: "orders-3".
        self.name = partition_folder(topic, partition)
        self.topic_id = topic_id
        self.config = config
        #: Oldest first, never empty; replaced, not changed, so that a held tuple stays what it was.
        self.segments = segments
        self._active = segments[-1]
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = max(log_start_offset, min(high_watermark, log_end_offset))
        self.epochs = epochs
        self._latest_epoch = epochs.latest
        self.producers = producers
        producers.on_high_watermark(self.high_watermark)
        self.last_stable_offset = self.high_watermark
        self._update_last_stable_offset()
        #: Called with the log, on the event loop, whenever high watermark, last stable or log start offset
        #: moved, or the log was closed.
        self.on_advance: list[Callable[[Any], object]] = []
        #: The error that took this log out of service; every append is refused with it.
        self.offline: OSError | None = None
        self.closed = False

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, [{self.log_start_offset}, {self.log_end_offset}))"

    @property
    def config(self) -> LogConfig:
        """The settings; may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        # What is still being written cannot be compacted: max.compaction.lag.ms bounds the age of a segment
        # too.
        lag_ms = config.max_compaction_lag_ms if config.is_compacted else LONG_MAX
        self._roll_ms = min(config.segment_ms, lag_ms)

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log, -1 if none."""
        return self._latest_epoch

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments, as DescribeLogDirs reports them."""
        return sum([segment.size for segment in self.segments])

    def active_producers(self) -> list[ProducerState]:
        """What DescribeProducers shows."""
        return list(self.producers.producers.values())

    # --- watermarks -------------------------------------------------------------------------------

    def advance_high_watermark(self, offset: int) -> None:
        """Raise the high watermark to `offset`, at most to the log end; lower values are ignored."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        producers = self.producers
        if producers.unreplicated or producers.ongoing:
            producers.on_high_watermark(offset)
            self._update_last_stable_offset()
        else:
            self.last_stable_offset = offset
        if self.on_advance:
            self.wake_waiting()

    def _update_last_stable_offset(self) -> None:
        unstable = self.producers.first_unstable_offset()
        stable = self.high_watermark if unstable is None else min(unstable, self.high_watermark)
        self.last_stable_offset = max(stable, self.log_start_offset)

    def wake_waiting(self) -> None:
        """Call everybody who wants to know that something about this log has changed."""
        for callback in tuple(self.on_advance):
            callback(self)

    def limit_offset(self, limit: Limit) -> int:
        """The offset that a reader of this kind may not reach."""
        if limit == "high_watermark":
            return self.high_watermark
        return self.last_stable_offset if limit == "last_stable" else self.log_end_offset
