"""The files of a core replica: quorum-state, log and snapshots, and what a crash leaves of them.

`quorum-state` and finished snapshots are replaced with a sync, so they are old or new. Appends and
truncations of the log reach the disk with the next sync; after a crash any number of the first of them has.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from pykafka_broker.raft.core.log_view import Batch, LogView, Membership, SnapshotFile, SnapshotId
from pykafka_broker.raft.core.state import ElectionState
from tests.simulation.log import Log
from tests.simulation.replica import SnapshotContent


class Snapshot(NamedTuple):
    """A snapshot's file, what it stands for, and the voters as of its end."""

    content: SnapshotContent
    membership: Membership
    file: bytes


class CoreDisk:
    """One directory; another `directory_id` is another disk."""

    def __init__(self, directory_id: bytes, first: Membership) -> None:
        self.directory_id = directory_id
        self.first = first
        self.election = ElectionState()
        self.log = Log()
        self.synced = Log()
        self.snapshots: dict[SnapshotId, Snapshot] = {}
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

    def install(self, content: Snapshot) -> None:
        """A received snapshot is synced and renamed, then the log starts anew at its end."""
        snapshot_id = content.content.snapshot_id
        self.snapshots[snapshot_id] = content
        end_offset = snapshot_id.end_offset
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
        base = self._base_snapshot()
        first = self.first if base is None else base.membership
        return self.log.view(first, self.last_epoch(), self.snapshot_files())

    def _base_snapshot(self) -> Snapshot | None:
        for snapshot_id, snapshot in self.snapshots.items():
            if snapshot_id.end_offset == self.log.start_offset:
                return snapshot
        return None

    def last_epoch(self) -> int:
        if self.log.batches:
            return self.log.batches[-1].epoch
        base = self._base_snapshot()
        return 0 if base is None else base.content.snapshot_id.epoch

    def snapshot_files(self) -> tuple[SnapshotFile, ...]:
        return tuple(
            SnapshotFile(snapshot_id, len(self.snapshots[snapshot_id].file))
            for snapshot_id in sorted(self.snapshots)
        )

    def holds(self, offset: int, epoch: int) -> bool:
        synced = self.synced
        if synced.start_offset >= offset:
            return True
        batch = synced.batch_at(offset - 1)
        return batch is not None and batch.epoch == epoch

    def durable_election(self) -> ElectionState:
        return self.election
