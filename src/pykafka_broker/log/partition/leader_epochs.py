"""The leader epoch cache: which leader epoch started at which offset (KIP-101, KIP-279, KIP-320).

A pure, ordered list of (epoch, start offset), both ascending. It answers OffsetForLeaderEpoch and the
divergence check of Fetch, is written to `leader-epoch-checkpoint`, and can always be rebuilt from the batch
headers of the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from pykafka_broker.log.disk.checkpoints import EpochEntry

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class LeaderEpochs:
    """A mutable cache owned by one log; `entries` is replaced on change, so a held tuple never changes."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self.entries: tuple[EpochEntry, ...] = ()
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def latest(self) -> int:
        """The newest epoch, -1 if none is known."""
        return self.entries[-1].epoch if self.entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that a batch of `epoch` starts at `start_offset`; True if the cache changed.

        Entries that contradict the batch (a later epoch, or a start at or past it) are of a truncated log and
        are removed.
        """
        entries = self.entries
        if epoch < 0 or start_offset < 0:
            return False
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        kept = tuple(e for e in entries if e.epoch < epoch and e.start_offset < start_offset)
        self.entries = (*kept, EpochEntry(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """(largest known epoch <= `epoch`, offset where the next one starts); (-1, -1) when that cannot be
        told.

        An epoch below every known one ends where the first known one starts.
        """
        entries = self.entries
        if epoch == UNDEFINED_EPOCH:
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        if self.latest == epoch:
            return EpochEntry(epoch, log_end_offset)
        higher = bisect_right(entries, epoch, key=_epoch)
        if higher == len(entries):
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        if higher == 0:
            return EpochEntry(epoch, entries[0].start_offset)
        return EpochEntry(entries[higher - 1].epoch, entries[higher].start_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch under which `offset` was (or would be) appended, -1 before the first known one."""
        found = bisect_right(self.entries, offset, key=_start_offset)
        return self.entries[found - 1].epoch if found else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that start at or past `end_offset`; True if there were any."""
        kept = tuple(e for e in self.entries if e.start_offset < end_offset)
        changed = len(kept) != len(self.entries)
        self.entries = kept
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs that ended at or before `start_offset`; the epoch in force at `start_offset` now
        starts there.
        """
        current = bisect_right(self.entries, start_offset, key=_start_offset) - 1
        if current < 0 or (self.entries[current].start_offset == start_offset and current == 0):
            return False
        moved = EpochEntry(self.entries[current].epoch, start_offset)
        self.entries = (moved, *self.entries[current + 1 :])
        return True


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset
