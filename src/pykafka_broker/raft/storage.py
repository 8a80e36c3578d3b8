"""What a replica keeps on disk: the metadata log (a partition log like any other), `quorum-state`, snapshots.

`load` reads it all once, at start: the newest snapshot, then every batch after it. Metadata records go to a
listener as framed values, for what they mean is not known here; control records are read here and give the
voters.

The two newest snapshots are kept, and the log from the older one on, so that a snapshot that cannot be read
costs nothing. Replicas that fetch will need more patience than that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.protocol.records.control import decode_raft_record
from pykafka_broker.raft.core.quorum import VoterSet
from pykafka_broker.raft.core.transitions import ElectionState, LogView
from pykafka_broker.raft.quorum_state import QUORUM_STATE, decode_quorum_state, encode_quorum_state
from pykafka_broker.raft.snapshots import (
    BOOTSTRAP_SNAPSHOT,
    SnapshotId,
    control_batch,
    decode_snapshot,
    encode_snapshot,
    metadata_batch,
    parse_snapshot_name,
)

logger = logging.getLogger(__name__)

#: The topic id of the metadata log, the same in every cluster.
METADATA_TOPIC_ID = bytes(15) + b"\x01"
_READ_BYTES = 8 << 20


class Listener(Protocol):
    """Who learns what the log holds."""

    def on_snapshot(self, snapshot_id: SnapshotId, values: Sequence[bytes]) -> None:
        """Start over from the metadata records of a snapshot."""

    def on_batch(self, base_offset: int, epoch: int, values: Sequence[bytes]) -> None:
        """The framed metadata records of one batch."""

    def on_control_batch(self, last_offset: int, epoch: int) -> None:
        """Offsets up to `last_offset` are taken by records that are not metadata."""


class Loaded(NamedTuple):
    """What boot goes by."""

    election: ElectionState
    view: LogView


class RaftStorage:
    """The files of one replica. `log` is open and recovered; its folder holds the other files too."""

    __slots__ = ("_files", "bytes_since_snapshot", "log", "static_voters")

    def __init__(self, files: FileSystem, log: PartitionLog) -> None:
        self._files = files
        self.log = log
        #: The voters of a quorum with kraft.version 0: its files do not name them.
        self.static_voters: tuple[int, ...] = ()
        #: How much a start would have to read after the newest snapshot.
        self.bytes_since_snapshot = 0

    @property
    def end_offset(self) -> int:
        """The next offset to append at."""
        return self.log.log_end_offset

    # -- at start --------------------------------------------------------------------------------------

    def load(self, listener: Listener) -> Loaded:
        """Read everything, telling `listener` in order. May take long: worker threads are welcome.

        Raises:
            MalformedFile: the log or the snapshot is damaged.
        """
        try:
            return self._load(listener)
        except KafkaError as error:
            raise MalformedFile(error.message) from error

    def _load(self, listener: Listener) -> Loaded:
        self._start_at_snapshot()
        voters, voters_in_log, offset = self._load_snapshot(listener)
        epoch = 0
        while offset < self.log.log_end_offset:
            data = self.log.plan_read(offset, _READ_BYTES, limit="log_end").read()
            for position, header in iter_batches(data):
                if header.next_offset <= offset:
                    continue
                self.bytes_since_snapshot += header.size_in_bytes
                records = read_records(data[position : position + header.size_in_bytes])
                epoch = header.partition_leader_epoch
                if header.is_control:
                    for record in records:
                        message = decode_raft_record(record.key, record.value)
                        if isinstance(message, m.VotersRecord):
                            voters, voters_in_log = VoterSet.from_record(message), True
                    listener.on_control_batch(header.last_offset, epoch)
                else:
                    listener.on_batch(header.base_offset, epoch, [record.value or b"" for record in records])
                offset = header.next_offset
        view = LogView(self.log.log_end_offset, max(epoch, self.log.latest_epoch), voters, voters_in_log)
        return Loaded(self._read_election_state(), view)

    def _start_at_snapshot(self) -> None:
        """Where the log ends before the newest good snapshot, go on from that: it holds all that is missing.

        As in Kafka. The file of the log was cut, or its end was damaged.
        """
        for snapshot_id in sorted(self.snapshots(), reverse=True):
            if snapshot_id.end_offset <= self.log.log_end_offset:
                return
            try:
                decode_snapshot(self._files.read_file(self._path(snapshot_id)))
            except MalformedFile:
                continue
            logger.error(
                "The metadata log ends at %d: going on from the snapshot %s",
                self.log.log_end_offset,
                snapshot_id.file_name,
            )
            self.log.reset_to(snapshot_id.end_offset)
            return

    def _load_snapshot(self, listener: Listener) -> tuple[VoterSet, bool, int]:
        """The voters as of the newest snapshot, whether other replicas see it, and where the log goes on."""
        for snapshot_id in sorted(self.snapshots(), reverse=True):
            if not self.log.log_start_offset <= snapshot_id.end_offset <= self.log.log_end_offset:
                logger.error("The metadata log does not go on from the snapshot %s", snapshot_id.file_name)
                continue
            try:
                snapshot = decode_snapshot(self._files.read_file(self._path(snapshot_id)))
            except MalformedFile as error:
                logger.error("Snapshot %s: %s", snapshot_id.file_name, error)
                continue
            voters = snapshot.voters or VoterSet({})
            if snapshot_id == BOOTSTRAP_SNAPSHOT:
                return voters, False, 0
            listener.on_snapshot(snapshot_id, snapshot.values)
            return voters, True, snapshot_id.end_offset
        if self.log.log_start_offset > 0:
            raise MalformedFile("the metadata log has been trimmed, and no snapshot stands for its beginning")
        return VoterSet({}), False, 0

    def snapshots(self) -> list[SnapshotId]:
        """The finished snapshots, in no particular order."""
        names = (parse_snapshot_name(entry.name) for entry in self._files.entries(self.log.directory))
        return [name for name in names if name is not None]

    def _read_election_state(self) -> ElectionState:
        try:
            return decode_quorum_state(self._files.read_file(join(self.log.directory, QUORUM_STATE)))
        except FileNotFoundError:
            return ElectionState()

    # -- while running ---------------------------------------------------------------------------------

    def write_election_state(self, state: ElectionState) -> None:
        """Keep a vote or an epoch; on disk when this returns."""
        path = join(self.log.directory, QUORUM_STATE)
        self._files.replace_file(path, encode_quorum_state(state, self.static_voters), sync=True)

    def append_control(self, messages: Sequence[object], *, epoch: int, now_ms: int) -> int:
        """Append one control batch; returns its first offset. Not on disk before `flush`."""
        batch = control_batch(messages, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        return self._append(batch, epoch, now_ms)

    def append_metadata(self, values: Sequence[bytes], *, epoch: int, now_ms: int) -> int:
        """Append one batch of framed metadata records; its first offset. Not on disk before `flush`."""
        batch = metadata_batch(values, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        return self._append(batch, epoch, now_ms)

    def _append(self, batch: bytes, epoch: int, now_ms: int) -> int:
        self.bytes_since_snapshot += len(batch)
        result = self.log.append(batch, leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.RAFT_LEADER)
        return result.first_offset

    def flush(self) -> None:
        """Return once everything appended before the call is on disk. For worker threads."""
        self.log.flush()

    def write_snapshot(
        self,
        snapshot_id: SnapshotId,
        values: Sequence[bytes],
        voters: VoterSet,
        *,
        last_timestamp_ms: int,
        now_ms: int,
    ) -> None:
        """Keep what the log says below `snapshot_id.end_offset`. For worker threads."""
        data = encode_snapshot(
            values,
            None if self.static_voters else voters,
            last_timestamp_ms=last_timestamp_ms,
            now_ms=now_ms,
            epoch=snapshot_id.epoch,
        )
        self._files.replace_file(self._path(snapshot_id), data, sync=True)

    def trim(self, now_ms: int) -> None:
        """Drop the log before the last snapshot but one, and older snapshots."""
        *older, kept = sorted(self.snapshots())[:-1] or [BOOTSTRAP_SNAPSHOT]
        if kept == BOOTSTRAP_SNAPSHOT:
            return
        self.log.delete_records(kept.end_offset)
        self.log.apply_retention(now_ms)
        for snapshot_id in older:
            if snapshot_id != BOOTSTRAP_SNAPSHOT:
                self._files.remove(self._path(snapshot_id))

    def _path(self, snapshot_id: SnapshotId) -> str:
        return join(self.log.directory, snapshot_id.file_name)
