"""The facts of a replica's log that decisions need: where it ends, its epochs, snapshots and voters.

The voters are those of the newest voters record in the log, committed or not (KIP-853), so a truncation
brings back those of the record before. A `LogView` describes the log after its step has been carried out.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.quorum import ReplicaKey, VoterSet
from pykafka_broker.system.named_tuple import NamedTuple

SNAPSHOT_SUFFIX = ".checkpoint"


class SnapshotId(NamedTuple):
    """Holds everything below `end_offset`; `epoch` is that of the last record below it."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """`00000000000000000042-0000000003.checkpoint`"""
        return f"{self.end_offset:020d}-{self.epoch:010d}{SNAPSHOT_SUFFIX}"


#: The snapshot that `format` writes to name the first voters; other replicas never see it.
BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)


class SnapshotFile(NamedTuple):
    """A finished snapshot, and the bytes of its file."""

    snapshot_id: SnapshotId
    size_bytes: int


class Membership(NamedTuple):
    """The voters, by the record at `offset` of the log.

    `offset` is -1 if no record of the log names them: then the configuration does (kraft.version 0), or the
    bootstrap snapshot (kraft.version 1). For voters of another snapshot it is the snapshot's last offset.
    """

    voters: VoterSet
    offset: int = -1
    kraft_version: int = 1


class EpochStart(NamedTuple):
    """The first offset that the leader of an epoch wrote."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The offset after the last record of an epoch."""

    epoch: int
    end_offset: int


class Batch(NamedTuple):
    """A batch of a leader: `control` has its control records, `data` is for the shell."""

    base_offset: int
    next_offset: int
    epoch: int
    control: tuple[object, ...] = ()
    data: object = None


class LogView(NamedTuple):
    """The log of one replica. `memberships` are never empty, the newest is the last.

    `start_offset` is that of the oldest record; a snapshot holds the records below it. All records below
    `flushed_offset` are on disk. `epochs` are those with records in the log, ascending; if the log is
    trimmed, the oldest one begins at `start_offset`. `snapshots` are the finished ones, ascending, without
    the bootstrap snapshot.
    """

    end_offset: int
    last_epoch: int
    memberships: tuple[Membership, ...]
    start_offset: int = 0
    flushed_offset: int = 0
    epochs: tuple[EpochStart, ...] = ()
    snapshots: tuple[SnapshotFile, ...] = ()

    @property
    def membership(self) -> Membership:
        """The newest voters, committed or not, and their record."""
        return self.memberships[-1]

    @property
    def voters(self) -> VoterSet:
        """The newest voters, committed or not."""
        return self.memberships[-1].voters

    @property
    def kraft_version(self) -> int:
        """0 if the configuration names the voters, 1 if the log does."""
        return self.memberships[-1].kraft_version

    def may_stand(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Whether a replica may be elected: as a voter, or as a removed voter until its removal is committed.

        Until then the removed voter may be the only one with records that the others need.
        """
        for voters, offset, _ in reversed(self.memberships):
            if voters.is_voter(key):
                return True
            if offset < high_watermark:
                return False
        return False

    def membership_below(self, end_offset: int) -> Membership:
        """The voters by the records below an offset, as a snapshot of it names them."""
        older = [membership for membership in self.memberships if membership.offset < end_offset]
        return older[-1] if older else self.memberships[0]

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The newest epoch of the log that is not newer than `epoch`, and where it ends.

        If the log has only newer epochs: the epoch of the snapshot at its start, or -1, ending at its start.
        """
        end_offset = self.end_offset
        for known in reversed(self.epochs):
            if known.epoch <= epoch:
                return EpochEnd(known.epoch, end_offset)
            end_offset = known.start_offset
        base = self.snapshot_at(self.start_offset)
        return EpochEnd(base.epoch if base is not None and base.epoch <= epoch else -1, self.start_offset)

    def snapshot_at(self, end_offset: int) -> SnapshotId | None:
        """The snapshot that ends at an offset."""
        for snapshot_id, _ in self.snapshots:
            if snapshot_id.end_offset == end_offset:
                return snapshot_id
        return None

    def appended(self, batches: Iterable[Batch]) -> LogView:
        """The log with batches at its end."""
        view = self
        for batch in batches:
            epochs = view.epochs
            if batch.epoch != view.last_epoch or not epochs:
                epochs = (*epochs, EpochStart(batch.epoch, batch.base_offset))
            view = view._replace(
                end_offset=batch.next_offset,
                last_epoch=batch.epoch,
                epochs=epochs,
                memberships=_taught(view.memberships, batch) if batch.control else view.memberships,
            )
        return view

    def truncated(self, end_offset: int) -> LogView:
        """The log without the records from `end_offset` on, and without the voters that they name."""
        epochs = tuple(known for known in self.epochs if known.start_offset < end_offset)
        base = self.snapshot_at(self.start_offset)
        before = base.epoch if base is not None else 0
        return self._replace(
            end_offset=end_offset,
            last_epoch=epochs[-1].epoch if epochs else before,
            flushed_offset=min(self.flushed_offset, end_offset),
            epochs=epochs,
            memberships=tuple(known for known in self.memberships if known.offset < end_offset),
        )

    def trimmed(self, start_offset: int, snapshots: tuple[SnapshotFile, ...]) -> LogView:
        """The log with these snapshots, and without the records below `start_offset`."""
        ends = [known.start_offset for known in self.epochs[1:]] + [self.end_offset]
        epochs = [
            EpochStart(known.epoch, max(known.start_offset, start_offset))
            for known, end_offset in zip(self.epochs, ends, strict=False)
            if end_offset > start_offset
        ]
        older = [known for known in self.memberships if known.offset < start_offset]
        newer = [known for known in self.memberships if known.offset >= start_offset]
        return self._replace(
            start_offset=start_offset,
            snapshots=snapshots,
            epochs=tuple(epochs),
            memberships=(*older[-1:], *newer),
        )


def _taught(memberships: tuple[Membership, ...], batch: Batch) -> tuple[Membership, ...]:
    """The memberships with those of a batch's control records."""
    kraft_version = memberships[-1].kraft_version
    for place, record in enumerate(batch.control):
        if isinstance(record, m.KRaftVersionRecord):
            kraft_version = record.kraft_version
        elif isinstance(record, m.VotersRecord):
            offset = batch.base_offset + place
            memberships = (*memberships, Membership(VoterSet.from_record(record), offset, kraft_version))
    return memberships
