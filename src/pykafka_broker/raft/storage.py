"""The files of a replica: the metadata log (an ordinary partition log), `quorum-state`, snapshots.

`load` finds the state to boot from: the election state, the newest snapshot, and the voters, which are in
control records. `read` gives the batches of the log in order. Metadata records are framed values here; the
packages above decode them. `received_snapshots.py` receives the snapshots that a leader sends.

The two newest snapshots are kept, and the log from the older one on, so that one unreadable snapshot loses
nothing. If a snapshot is removed while a replica fetches it, the replica starts over with the newest one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.environment import PASSING_ERRORS
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import TEMPORARY_SUFFIX
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.protocol.records.batch import BatchHeader, iter_batches, read_records
from pykafka_broker.protocol.records.control import decode_raft_record
from pykafka_broker.raft.core.log_view import (
    BOOTSTRAP_SNAPSHOT,
    SNAPSHOT_SUFFIX,
    Batch,
    EpochStart,
    LogView,
    Membership,
    SnapshotFile,
    SnapshotId,
)
from pykafka_broker.raft.core.quorum import NO_VOTERS, VoterSet
from pykafka_broker.raft.core.state import ElectionState
from pykafka_broker.raft.quorum_state import read_quorum_state, write_quorum_state
from pykafka_broker.raft.received_snapshots import ReceivedSnapshots, remove_parts
from pykafka_broker.raft.snapshots import (
    control_batch,
    decode_snapshot,
    encode_snapshot,
    metadata_batch,
    parse_snapshot_name,
)
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger(__name__)

_READ_BYTES = 8 << 20


class StoredBatch(NamedTuple):
    """One batch of the log. `values` has its framed metadata records; None for a control batch."""

    base_offset: int
    next_offset: int
    epoch: int
    values: tuple[bytes, ...] | None


class StoredSnapshot(NamedTuple):
    """The framed metadata records of a snapshot."""

    snapshot_id: SnapshotId
    values: tuple[bytes, ...]


class Loaded(NamedTuple):
    """The state to boot from. The log continues at the end of `snapshot`, or at 0 without one."""

    election: ElectionState
    view: LogView
    snapshot: StoredSnapshot | None

    @property
    def start_offset(self) -> int:
        """The offset of the first batch after the snapshot."""
        return 0 if self.snapshot is None else self.snapshot.snapshot_id.end_offset


class RaftStorage:
    """The files of one replica. `log` is open and recovered; its folder holds the other files too.

    `configured_voters` are those of `controller.quorum.voters`, for a log that names none (kraft.version 0).
    """

    __slots__ = ("_configured_voters", "_files", "bytes_since_snapshot", "log", "received", "static_voters")

    def __init__(self, files: FileSystem, log: PartitionLog, configured_voters: VoterSet = NO_VOTERS) -> None:
        self._files = files
        self._configured_voters = configured_voters
        self.log = log
        #: Receives the snapshots that a leader sends.
        self.received = ReceivedSnapshots(files, log.directory)
        #: The voters of a quorum with kraft.version 0; the log does not name them.
        self.static_voters: tuple[int, ...] = ()
        #: The bytes of the log after the newest snapshot, which a start must read.
        self.bytes_since_snapshot = 0

    @property
    def end_offset(self) -> int:
        """The next offset to append at."""
        return self.log.state.log_end_offset

    # -- at start --------------------------------------------------------------------------------------

    def load(self) -> Loaded:
        """Find the state to boot from. May take long; may run in a worker thread.

        Raises:
            MalformedFile: the log or the snapshot is damaged.
        """
        try:
            return self._load()
        except KafkaError as error:
            raise MalformedFile(error.message) from error

    def _load(self) -> Loaded:
        remove_parts(self._files, self.log.directory)
        self._start_at_snapshot()
        snapshot, membership = self._load_snapshot()
        if snapshot is not None:
            self._start_where_trimmed(snapshot.snapshot_id)
        if not membership.voters.voters and self._configured_voters.voters:
            membership = Membership(self._configured_voters, kraft_version=0)
        memberships = [membership]
        epoch = 0
        end_offset = 0 if snapshot is None else snapshot.snapshot_id.end_offset
        try:
            for header, batch in self._batches(end_offset):
                self.bytes_since_snapshot += header.size_in_bytes
                epoch, end_offset = header.partition_leader_epoch, header.next_offset
                if header.is_control:
                    memberships += _voters_in(header, batch)
        except KafkaError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE or len(memberships[-1].voters.voters) == 1:
                raise
            self._cut_at_damage(end_offset, error)
        state = self.log.state
        base_epoch = 0 if snapshot is None else snapshot.snapshot_id.epoch
        view = LogView(
            state.log_end_offset,
            max(epoch, state.latest_epoch, base_epoch),
            tuple(memberships),
            state.log_start_offset,
            0,
            tuple(EpochStart(entry.epoch, entry.start_offset) for entry in state.epochs.entries),
            self.snapshot_files(),
        )
        if view.kraft_version == 0:
            self.static_voters = tuple(sorted(view.voters.voters))
        return Loaded(read_quorum_state(self._files, self.log.directory), view, snapshot)

    def _cut_at_damage(self, end_offset: int, error: KafkaError) -> None:
        """Truncate the log at the damage, as in Kafka: other voters have the rest.

        A power cut may lose some unsynced pages and keep later ones. An only voter refuses to start instead,
        because its log is the only one.
        """
        logger.error("%s. It is cut there, at %d: the leader has the rest", error.message, end_offset)
        self.log.trimmer.truncate_to(end_offset)

    def snapshot_files(self) -> tuple[SnapshotFile, ...]:
        """The finished snapshots that other replicas may have, ascending."""
        found = []
        for entry in self._files.entries(self.log.directory, sizes_of=(SNAPSHOT_SUFFIX,)):
            snapshot_id = parse_snapshot_name(entry.name)
            if snapshot_id is not None and snapshot_id != BOOTSTRAP_SNAPSHOT:
                found.append(SnapshotFile(snapshot_id, entry.size))
        return tuple(sorted(found))

    def read(self, start_offset: int, end_offset: int) -> Iterator[StoredBatch]:
        """The whole batches of the log that lie between two offsets.

        Raises:
            MalformedFile: the log is damaged.
        """
        try:
            for header, batch in self._batches(start_offset):
                if header.next_offset > end_offset:
                    return
                yield StoredBatch(
                    header.base_offset,
                    header.next_offset,
                    header.partition_leader_epoch,
                    None if header.is_control else tuple(r.value or b"" for r in read_records(batch)),
                )
        except KafkaError as error:
            raise MalformedFile(error.message) from error

    def _batches(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Every batch from `offset` on, with its bytes."""
        while offset < self.log.state.log_end_offset:
            data = self.log.reader.plan_read(offset, _READ_BYTES, limit="log_end").read()
            before = offset
            for position, header in iter_batches(data):
                if header.next_offset > offset:
                    yield header, data[position : position + header.size_in_bytes]
                    offset = header.next_offset
            if offset == before:
                raise MalformedFile(
                    f"the metadata log has no batch at offset {offset}, which is below its end"
                )

    def _start_at_snapshot(self) -> None:
        """If the log does not reach the newest good snapshot, restart the log at the snapshot's end.

        Kafka does so too. Either the end of the log was cut or damaged, or the replica stopped after it had
        received the snapshot and before it restarted its log.
        """
        for snapshot_id in sorted(self.snapshots(), reverse=True):
            if self._goes_on_from(snapshot_id):
                return
            try:
                decode_snapshot(self._files.read_file(self._path(snapshot_id)))
            except MalformedFile:
                continue
            logger.error(
                "The metadata log ends at %d: going on from the snapshot %s",
                self.log.state.log_end_offset,
                snapshot_id.file_name,
            )
            self.log.trimmer.reset_to(snapshot_id.end_offset)
            return

    def _goes_on_from(self, snapshot_id: SnapshotId) -> bool:
        """Whether the log continues at the snapshot's end, with records of its epoch or a newer one.

        The batches tell the epochs, because the file of leader epochs may be damaged.
        """
        end_offset = self.log.state.log_end_offset
        if snapshot_id.end_offset >= end_offset:
            return snapshot_id.end_offset == end_offset
        try:
            header, _ = next(self._batches(max(snapshot_id.end_offset, self.log.state.log_start_offset)))
        except KafkaError:
            return True  # the damage is handled when the log is read
        return header.partition_leader_epoch >= snapshot_id.epoch

    def _start_where_trimmed(self, newest: SnapshotId) -> None:
        """Start the log where `trim` left it.

        The first segment begins earlier, but its earlier epochs are no longer known: a follower would be told
        that its log diverges. A power cut may bring back some removed segments, and with them damages.
        """
        start_offset = self._kept_snapshot().end_offset
        damages = [damage for segment in self.log.state.segments for damage in segment.trust.damages]
        if any(damage.first_offset < newest.end_offset for damage in damages):
            start_offset = newest.end_offset
        self.log.trimmer.advance_log_start_offset(min(start_offset, self.end_offset))

    def _kept_snapshot(self) -> SnapshotId:
        """The second newest snapshot, where the trimmed log starts; `BOOTSTRAP_SNAPSHOT` if there is none."""
        return sorted((BOOTSTRAP_SNAPSHOT, BOOTSTRAP_SNAPSHOT, *self.snapshots()))[-2]

    def _load_snapshot(self) -> tuple[StoredSnapshot | None, Membership]:
        """The newest snapshot, and the voters as of it."""
        for snapshot_id in sorted(self.snapshots(), reverse=True):
            if not self.log.state.log_start_offset <= snapshot_id.end_offset <= self.log.state.log_end_offset:
                logger.error("The metadata log does not go on from the snapshot %s", snapshot_id.file_name)
                continue
            try:
                snapshot = decode_snapshot(self._files.read_file(self._path(snapshot_id)))
            except MalformedFile as error:
                logger.error("Snapshot %s: %s", snapshot_id.file_name, error)
                continue
            voters = snapshot.voters or NO_VOTERS
            if snapshot_id == BOOTSTRAP_SNAPSHOT:
                return None, Membership(voters)
            in_log = snapshot_id.end_offset - 1 if snapshot.voters else -1
            return StoredSnapshot(snapshot_id, snapshot.values), Membership(voters, in_log)
        if self.log.state.log_start_offset > 0:
            raise MalformedFile("the metadata log has been trimmed, and no snapshot stands for its beginning")
        return None, Membership(NO_VOTERS)

    def snapshots(self) -> list[SnapshotId]:
        """The finished snapshots, in no particular order."""
        names = (parse_snapshot_name(entry.name) for entry in self._files.entries(self.log.directory))
        return [name for name in names if name is not None]

    # -- while running ---------------------------------------------------------------------------------

    def write_election_state(self, state: ElectionState, membership: Membership) -> None:
        """Write a vote or an epoch in the form of the kraft.version; on disk when this returns."""
        static_voters = () if membership.kraft_version else tuple(sorted(membership.voters.voters))
        write_quorum_state(self._files, self.log.directory, state, static_voters)

    def append_control(self, messages: Sequence[object], *, epoch: int, now_ms: int) -> int:
        """Append one control batch; returns its first offset. Not on disk before `flush`."""
        batch = control_batch(messages, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        return self._append(batch, epoch, now_ms)

    def append_metadata(self, values: Sequence[bytes], *, epoch: int, now_ms: int) -> int:
        """Append one batch of framed metadata records; return its first offset. `flush` makes it durable."""
        batch = metadata_batch(values, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        return self._append(batch, epoch, now_ms)

    def _append(self, batch: bytes, epoch: int, now_ms: int) -> int:
        self.bytes_since_snapshot += len(batch)
        result = self.log.writer.append(
            batch, leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.RAFT_LEADER
        )
        return result.first_offset

    def append_replicated(self, batches: Iterable[Batch], *, now_ms: int) -> None:
        """Append the batches of a leader unchanged; `data` has their bytes. `flush` makes them durable."""
        for batch in batches:
            assert isinstance(batch.data, (bytes, bytearray, memoryview))
            self.bytes_since_snapshot += len(batch.data)
            self.log.writer.append(
                batch.data, leader_epoch=batch.epoch, now_ms=now_ms, origin=AppendOrigin.REPLICATION
            )

    def truncate(self, end_offset: int) -> None:
        """Remove the records from `end_offset` on. May wait for the disk."""
        self.log.trimmer.truncate_to(end_offset)

    def view_at(self, snapshot_id: SnapshotId, voters: VoterSet | None) -> LogView:
        """The log after `begin_at`; `voters` are those that the snapshot names."""
        end_offset, epoch = snapshot_id
        membership = Membership(self._configured_voters, kraft_version=0)
        if voters is not None:
            membership = Membership(voters, end_offset - 1)
        return LogView(
            end_offset,
            epoch,
            (membership,),
            start_offset=end_offset,
            flushed_offset=end_offset,
            snapshots=self.snapshot_files(),
        )

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        """Restart the log at the end of a snapshot, which replaces all records. May wait for the disk."""
        self.log.trimmer.reset_to(snapshot_id.end_offset)
        self.bytes_since_snapshot = 0

    def read_for_replica(self, offset: int, max_bytes: int) -> Buffer:
        """The batches from the one with `offset` on, committed or not: at least one, then up to `max_bytes`.

        Raises:
            KafkaError: the log has no such offset, or cannot be read.
        """
        return self.log.reader.plan_read(offset, max_bytes, limit="log_end").read()

    def read_snapshot_part(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """A part of the file of a snapshot.

        Raises:
            FileNotFoundError: it has been removed.
        """
        file = self._files.open(self._path(snapshot_id), writable=False)
        try:
            return file.pread(max_bytes, position)
        finally:
            file.close()

    def flush(self) -> bool:
        """Return once everything appended before the call is on disk; False: not yet, the disk has no room
        for a file beside the log. For worker threads.

        Raises:
            KafkaError: the disk failed.
        """
        try:
            self.log.flusher.flush()
        except KafkaError as error:
            cause = error.__cause__
            may_pass = isinstance(cause, OSError) and cause.errno in PASSING_ERRORS
            if not may_pass or self.log.flusher.has_failed:
                raise
            return False
        return True

    def write_snapshot(
        self,
        snapshot_id: SnapshotId,
        values: Sequence[bytes],
        membership: Membership,
        *,
        last_timestamp_ms: int,
        now_ms: int,
    ) -> None:
        """Write the snapshot of the log below `snapshot_id.end_offset` and its voters. For worker threads."""
        data = encode_snapshot(
            values,
            membership.voters if membership.kraft_version else None,
            last_timestamp_ms=last_timestamp_ms,
            now_ms=now_ms,
            epoch=snapshot_id.epoch,
        )
        path = self._path(snapshot_id)
        try:
            self._files.replace_file(path, data, sync=True)
        except OSError:
            # What was written of it may fill the disk, so that the log could not grow.
            self._files.remove(path + TEMPORARY_SUFFIX)
            raise

    def trim(self, now_ms: int) -> None:
        """Drop the log before the second newest snapshot, and older snapshots.

        Raises:
            OSError: a snapshot could not be removed; all else is done.
        """
        kept = self._kept_snapshot()
        if kept == BOOTSTRAP_SNAPSHOT:
            return
        self.log.trimmer.delete_records(kept.end_offset)
        self.log.trimmer.apply_retention(now_ms)
        failure: OSError | None = None
        for snapshot_id in self.snapshots():
            if BOOTSTRAP_SNAPSHOT < snapshot_id < kept:
                try:
                    self._files.remove(self._path(snapshot_id))
                except OSError as error:
                    failure = error
        if failure is not None:
            raise failure

    def _path(self, snapshot_id: SnapshotId) -> str:
        return join(self.log.directory, snapshot_id.file_name)


def _voters_in(header: BatchHeader, batch: bytes) -> Iterator[Membership]:
    """The voters that a control batch names."""
    for place, record in enumerate(read_records(batch)):
        message = decode_raft_record(record.key, record.value)
        if isinstance(message, m.VotersRecord):
            yield Membership(VoterSet.from_record(message), header.base_offset + place)
