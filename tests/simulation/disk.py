"""The files of a simulated replica: quorum-state, log and snapshots, and what a crash leaves of them.

`quorum-state` and finished snapshots are replaced with a sync, so they are old or new. Appends and
truncations of the log reach the disk with the next sync; after a crash any number of the first of them has.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.log_view import (
    Batch,
    EpochStart,
    LogView,
    Membership,
    SnapshotFile,
    SnapshotId,
)
from pykafka_broker.raft.core.quorum import VoterSet
from pykafka_broker.raft.core.state import ElectionState


class SnapshotContent(NamedTuple):
    """What a snapshot stands for: a digest of all records below its end, and the voters as of there."""

    snapshot_id: SnapshotId
    digest: int
    membership: Membership
    file: bytes


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


class Disk:
    """One directory; another `directory_id` is another disk."""

    def __init__(self, directory_id: bytes, first: Membership) -> None:
        self.directory_id = directory_id
        self.first = first
        self.election = ElectionState()
        self.log = Log()
        self.synced = Log()
        self.snapshots: dict[SnapshotId, SnapshotContent] = {}
        self.received: bytes = b""
        #: Appends and truncations that are not synced: a batch, or an end offset.
        self._pending: list[Batch | int] = []
        #: The number of all appends and truncations so far.
        self.written = 0

    # -- writing ---------------------------------------------------------------------------------------

    def append(self, batch: Batch) -> None:
        self.log.append(batch)
        self._pending.append(batch)
        self.written += 1

    def truncate(self, end_offset: int) -> None:
        self.log.truncate(end_offset)
        self._pending.append(end_offset)
        self.written += 1

    def sync(self) -> None:
        self.sync_until(self.written)

    def sync_until(self, written: int) -> None:
        """Sync what had been written when so much had."""
        count = max(0, written - (self.written - len(self._pending)))
        for operation in self._pending[:count]:
            self._apply(self.synced, operation)
        del self._pending[:count]

    def _apply(self, log: Log, operation: Batch | int) -> None:
        if isinstance(operation, int):
            log.truncate(operation)
        else:
            log.append(operation)

    def install(self, content: SnapshotContent) -> None:
        """A received snapshot is synced and renamed, then the log starts anew at its end."""
        end_offset = content.snapshot_id.end_offset
        self.snapshots[content.snapshot_id] = content
        self.log, self.synced = Log(end_offset), Log(end_offset)
        self._pending.clear()

    def trim(self, start_offset: int) -> None:
        """Delete the log before an offset, and the snapshots before the one that stands for it."""
        self.sync()
        self.log.trim(start_offset)
        self.synced.trim(start_offset)
        for snapshot_id in [known for known in self.snapshots if known.end_offset < start_offset]:
            del self.snapshots[snapshot_id]

    def crash(self, chance: random.Random) -> None:
        """Lose what is not synced, but for as many of the first operations as chance has it."""
        kept = self.synced.copy()
        for operation in self._pending[: chance.randint(0, len(self._pending))]:
            self._apply(kept, operation)
        self.log, self.synced = kept, kept.copy()
        self._pending.clear()
        self.received = b""

    # -- reading ---------------------------------------------------------------------------------------

    def view(self) -> LogView:
        """The facts of the log as a start finds them."""
        epochs: list[EpochStart] = []
        memberships = [self._base()]
        for batch in self.log.batches:
            if not epochs or epochs[-1].epoch != batch.epoch:
                epochs.append(EpochStart(batch.epoch, batch.base_offset))
            kraft_version = memberships[-1].kraft_version
            for place, record in enumerate(batch.control):
                if isinstance(record, m.KRaftVersionRecord):
                    kraft_version = record.kraft_version
                elif isinstance(record, m.VotersRecord):
                    voters = VoterSet.from_record(record)
                    memberships.append(Membership(voters, batch.base_offset + place, kraft_version))
        return LogView(
            self.log.end_offset,
            self.last_epoch(),
            tuple(memberships),
            self.log.start_offset,
            0,
            tuple(epochs),
            self.snapshot_files(),
        )

    def _base(self) -> Membership:
        content = self._base_snapshot()
        return self.first if content is None else content.membership

    def _base_snapshot(self) -> SnapshotContent | None:
        for snapshot_id, content in self.snapshots.items():
            if snapshot_id.end_offset == self.log.start_offset:
                return content
        return None

    def last_epoch(self) -> int:
        if self.log.batches:
            return self.log.batches[-1].epoch
        content = self._base_snapshot()
        return 0 if content is None else content.snapshot_id.epoch

    def snapshot_files(self) -> tuple[SnapshotFile, ...]:
        return tuple(
            SnapshotFile(snapshot_id, len(self.snapshots[snapshot_id].file))
            for snapshot_id in sorted(self.snapshots)
        )
