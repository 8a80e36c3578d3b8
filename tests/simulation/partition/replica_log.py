"""The log of a simulated replica: what Kafka's rules of replication look at, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.replication.core.state import LogOffsets


class Record(NamedTuple):
    """A record: the leader epoch in which it was written, and what a producer has written."""

    epoch: int
    value: int


class ReplicaLog:
    """Offsets are indexes of `records`."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.epochs = LeaderEpochs()
        self.high_watermark = 0

    @property
    def end(self) -> int:
        return len(self.records)

    #: As the core of a follower sees it.
    log_end_offset = end

    @property
    def offsets(self) -> LogOffsets:
        return LogOffsets(self.high_watermark, self.end)

    def begin_epoch(self, epoch: int) -> None:
        self.epochs.assign(epoch, self.end)

    def append(self, records: Sequence[Record]) -> None:
        for record in records:
            self.begin_epoch(record.epoch)
            self.records.append(record)

    def truncate(self, offset: int) -> None:
        del self.records[offset:]
        self.epochs.truncate_from_end(offset)
        self.high_watermark = min(self.high_watermark, offset)
