"""The state of one partition's log: its segments, and the offsets that everything else depends on.

    log start offset <= last stable offset <= high watermark <= log end offset

* log end offset: the next offset to assign; moves at append.
* high watermark: all in-sync replicas have the records below; moved by the caller (`advance_high_watermark`);
  consumers see nothing past it.
* last stable offset: the high watermark, or the start of the oldest transaction whose outcome is not below
  it; read-committed consumers see nothing past it.
* log start offset: the first offset left by retention or DeleteRecords.
* recovery point: everything below is on stable storage.

`LogReader` reads the state, `LogWriter` makes the log grow, `LogTrimmer` makes it shrink, `Flusher` makes it
durable, `Compaction` replaces segments. They share one `LogState` and hold no offsets of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.disk.names import partition_folder
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.limit import Limit
from pykafka_broker.log.partition.producers import ProducerState, ProducerStates
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.system.named_tuple import NamedTuple


class LogIdentity(NamedTuple):
    """The partition of a log, and the folder that holds it."""

    directory: str
    topic: str
    partition: int
    topic_id: bytes

    @property
    def name(self) -> str:
        """As Kafka prints it: "orders-3"."""
        return partition_folder(self.topic, self.partition)


class OpenedLog(NamedTuple):
    """The initial state of a log, as found when its folder was opened or made."""

    #: Oldest first, at least one.
    segments: tuple[Segment, ...]
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    #: Everything below is on stable storage.
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerStates
    #: The offset of the newest producer snapshot; -1 if there is none.
    snapshot_offset: int = -1
    #: The offset at which the last compaction ended; None if there was none.
    cleaned_offset: Optional[int] = None
    #: Offsets that are missing from here on were lost; None without a note.
    dense_from: Optional[int] = None
    #: Files and folders whose latest change may not be durable, besides those of segments.
    unsynced: frozenset[str] = frozenset()


class LogState:
    """Segments, offsets, producers, and the callbacks for changes. Event loop only, except where said."""

    __slots__ = (
        "active",
        "cleaned_offset",
        "closed",
        "config",
        "epochs",
        "high_watermark",
        "identity",
        "last_stable_offset",
        "latest_epoch",
        "log_end_offset",
        "log_start_offset",
        "name",
        "offline",
        "on_advance",
        "producers",
        "recovery_point",
        "retired",
        "roll_ms",
        "segments",
    )

    def __init__(self, identity: LogIdentity, config: LogConfig, opened: OpenedLog) -> None:
        #: Replaced when the folder gets another name, or the topic id becomes known.
        self.identity = identity
        #: As Kafka prints it: "orders-3".
        self.name = identity.name
        self.reconfigure(config)
        #: Oldest first, never empty; replaced, not changed, so that a held tuple stays as it was.
        self.segments = opened.segments
        #: The last segment, the one that is appended to.
        self.active = opened.segments[-1]
        self.log_start_offset = opened.log_start_offset
        self.log_end_offset = opened.log_end_offset
        self.high_watermark = max(opened.log_start_offset, min(opened.high_watermark, opened.log_end_offset))
        self.recovery_point = opened.recovery_point
        #: The offset at which the last compaction ended; None if there was none.
        self.cleaned_offset = opened.cleaned_offset
        self.epochs = opened.epochs
        #: The newest leader epoch in the log, -1 if none.
        self.latest_epoch = opened.epochs.latest
        self.producers = opened.producers
        self.producers.on_high_watermark(self.high_watermark)
        self.last_stable_offset = self.high_watermark
        self.update_last_stable_offset()
        #: Called, on the event loop, whenever high watermark, last stable or log start offset moved, or the
        #: log was closed.
        self.on_advance: list[Callable[[LogState], object]] = []
        #: The error that took this log out of service; every append is refused with it.
        self.offline: OSError | None = None
        #: Nothing may be appended any more.
        self.closed = False
        #: The partition was deleted: no worker may touch a file of the folder by its name.
        self.retired = False

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, [{self.log_start_offset}, {self.log_end_offset}))"

    def reconfigure(self, config: LogConfig) -> None:
        """Use these settings from now on."""
        #: Replaced here only: `roll_ms` follows from it.
        self.config = config
        # The active segment cannot be compacted: max.compaction.lag.ms bounds its age too.
        lag_ms = config.max_compaction_lag_ms if config.is_compacted else LONG_MAX
        self.roll_ms = min(config.segment_ms, lag_ms)

    @property
    def directory(self) -> str:
        """The folder of the log."""
        return self.identity.directory

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments, as DescribeLogDirs reports them."""
        return sum([segment.size for segment in self.segments])

    @property
    def unflushed_messages(self) -> int:
        """The number of offsets that a power cut may lose."""
        return self.log_end_offset - self.recovery_point

    @property
    def was_compacted(self) -> bool:
        """Whether compaction is known to be, or to have been, at work here."""
        return self.config.is_compacted or self.cleaned_offset is not None

    def active_producers(self) -> list[ProducerState]:
        """The producers that DescribeProducers lists."""
        return list(self.producers.producers.values())

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers idle for `producer.id.expiration.ms`; returns how many."""
        return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    @property
    def damaged_from(self) -> int | None:
        """The first offset that is known to be damaged; None if none is."""
        damages = (damage for segment in self.segments for damage in segment.trust.damages)
        return next((max(damage.first_offset, self.log_start_offset) for damage in damages), None)

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
            self.update_last_stable_offset()
        else:
            self.last_stable_offset = offset
        if self.on_advance:
            self.wake_waiting()

    def update_last_stable_offset(self) -> None:
        """Bring the last stable offset in line with producers, high watermark and log start offset."""
        unstable = self.producers.first_unstable_offset()
        stable = self.high_watermark if unstable is None else min(unstable, self.high_watermark)
        self.last_stable_offset = max(stable, self.log_start_offset)

    def wake_waiting(self) -> None:
        """Call every callback of `on_advance`."""
        for callback in tuple(self.on_advance):
            callback(self)

    def limit_offset(self, limit: Limit) -> int:
        """The offset that a reader of this kind may not reach."""
        if limit == "high_watermark":
            return self.high_watermark
        return self.last_stable_offset if limit == "last_stable" else self.log_end_offset
