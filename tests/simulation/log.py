"""A log of batches in memory: the log of a simulated disk, or what one on files should be."""

from __future__ import annotations

from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.log_view import Batch, EpochStart, LogView, Membership, SnapshotFile
from pykafka_broker.raft.core.quorum import VoterSet


class Log:
    """Batches, and the offset of the first."""

    __slots__ = ("batches", "start_offset")

    def __init__(self, start_offset: int = 0, batches: list[Batch] | None = None) -> None:
        self.start_offset = start_offset
        self.batches = batches if batches is not None else []

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    def append(self, batch: Batch) -> None:
        assert batch.base_offset == self.end_offset, (batch, self.end_offset)
        self.batches.append(batch)

    def truncate(self, end_offset: int) -> None:
        while self.batches and self.batches[-1].next_offset > end_offset:
            removed = self.batches.pop()
            assert removed.base_offset >= end_offset, "a truncation inside a batch"

    def trim(self, start_offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.next_offset > start_offset]
        self.start_offset = start_offset

    def copy(self) -> Log:
        return Log(self.start_offset, list(self.batches))

    def read(self, offset: int, count: int) -> tuple[Batch, ...]:
        found = [batch for batch in self.batches[-200:] if batch.next_offset > offset]
        if found and found[0].base_offset > offset:
            found = [batch for batch in self.batches if batch.next_offset > offset]
        return tuple(found[:count])

    def batch_at(self, offset: int) -> Batch | None:
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].next_offset <= offset:
                low = middle + 1
            else:
                high = middle
        if low < len(self.batches) and self.batches[low].base_offset <= offset:
            return self.batches[low]
        return None

    def view(self, base: Membership, base_epoch: int, snapshots: tuple[SnapshotFile, ...] = ()) -> LogView:
        """The facts of the log, which begins with these voters and after a record of this epoch."""
        epochs: list[EpochStart] = []
        memberships = [base]
        for batch in self.batches:
            if not epochs or epochs[-1].epoch != batch.epoch:
                epochs.append(EpochStart(batch.epoch, batch.base_offset))
            kraft_version = memberships[-1].kraft_version
            for place, record in enumerate(batch.control):
                offset = batch.base_offset + place
                if isinstance(record, m.KRaftVersionRecord):
                    kraft_version = record.kraft_version
                elif isinstance(record, m.VotersRecord) and offset > base.offset:
                    memberships.append(Membership(VoterSet.from_record(record), offset, kraft_version))
        last_epoch = self.batches[-1].epoch if self.batches else base_epoch
        return LogView(
            self.end_offset, last_epoch, tuple(memberships), self.start_offset, 0, tuple(epochs), snapshots
        )
