"""The files of a shell replica: those of a broker, in memory; beside them the log as invariants look at it.

`log` is what the records on the files say: it is read from them at each start, and kept up with each write.
What a crash leaves is the business of `testing/memory_files.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pykafka_broker.cluster.image import MINIMUM_METADATA_VERSION
from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment, FileJobs
from pykafka_broker.log.disk.files import directory_name, join
from pykafka_broker.log.disk.names import METADATA_TOPIC, partition_folder
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.messages.records.metadata import TopicRecord
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.protocol.records.errors import CorruptRecord
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC_ID
from pykafka_broker.raft.core.log_view import (
    BOOTSTRAP_SNAPSHOT,
    SNAPSHOT_SUFFIX,
    Batch,
    LogView,
    Membership,
    SnapshotId,
)
from pykafka_broker.raft.core.quorum import NO_VOTERS, VoterSet
from pykafka_broker.raft.core.state import ElectionState
from pykafka_broker.raft.quorum_state import QUORUM_STATE, decode_quorum_state
from pykafka_broker.raft.snapshots import encode_snapshot, parse_snapshot_name
from pykafka_broker.raft.storage import Loaded, RaftStorage
from pykafka_broker.raft.wire.fetched import fetched_batches
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.simulation.log import Log

FOLDER = f"/data/{partition_folder(METADATA_TOPIC, 0)}"
#: Some ten batches in a segment: logs have several, and trimming removes some.
LOG = LogConfig(segment_bytes=1800, cleanup_policy=frozenset())
_ALL = 1 << 30


def record_with(value: int) -> TopicRecord:
    """The record that a client writes: any that can carry a number."""
    return TopicRecord(name=str(value), topic_id=bytes(16))


def value_in(record: object) -> int:
    """The number in a record of a client."""
    assert isinstance(record, TopicRecord)
    return int(record.name)


def value_of(record: bytes) -> int:
    """The number in a record of a client as it is in the log."""
    return value_in(decode_record(record))


def record_of(value: int) -> bytes:
    """The record of a client as it is in the log."""
    return encode_record(record_with(value), MINIMUM_METADATA_VERSION)


class ShellDisk:
    """One directory; another `directory_id` is another disk."""

    def __init__(self, directory_id: bytes, first: Membership) -> None:
        self.directory_id = directory_id
        self.files = MemoryFiles()
        self.log = Log()
        #: All below was on stable storage when the process last ended.
        self.promised = 0
        self._configured = first.voters if first.kraft_version == 0 else NO_VOTERS
        self._base = first
        self._base_epoch = 0
        self.files.make_directory(FOLDER)
        if first.kraft_version and first.voters.voters:
            content = encode_snapshot((), first.voters, last_timestamp_ms=0, now_ms=0)
            self.files.replace_file(join(FOLDER, BOOTSTRAP_SNAPSHOT.file_name), content, sync=True)
        self.files.sync_directory(directory_name(FOLDER))

    def open(
        self, watcher: StorageWatcher, run_later: Callable[[Callable[[], object]], None]
    ) -> WatchedStorage:
        """The storage of a process that starts."""
        jobs = FileJobs(run_later, run_in_turn=run_later, bury=lambda job, delay_ms: run_later(job))
        environment = Environment(self.files, jobs)
        identity = LogIdentity(FOLDER, METADATA_TOPIC, 0, METADATA_TOPIC_ID)
        log: PartitionLog
        if any(entry.name.endswith(".log") for entry in self.files.entries(FOLDER)):
            log = open_log(environment, identity, LOG, clean=False, now_ms=0)
        else:
            log = create_log(environment, identity, LOG)
        return WatchedStorage(self, log, self._configured, watcher)

    def reload(self, storage: RaftStorage, loaded: Loaded) -> None:
        """Read what a start has found."""
        start_offset = storage.log.state.log_start_offset
        self.log = Log(start_offset)
        self._base = loaded.view.memberships[0]
        known = [file.snapshot_id for file in storage.snapshot_files()]
        self._base_epoch = max((epoch for end, epoch in known if end == start_offset), default=0)
        for batch in batches_of(storage):
            self.log.append(batch)

    # -- what is written -------------------------------------------------------------------------------

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        self.log, self._base_epoch = Log(snapshot_id.end_offset), snapshot_id.epoch

    def begin_with(self, base: Membership) -> None:
        self._base = base

    def trim(self, start_offset: int) -> None:
        if start_offset <= self.log.start_offset:
            return
        last = self.log.batch_at(start_offset - 1)
        assert last is not None
        self._base, self._base_epoch = self.view().membership_below(start_offset), last.epoch
        self.log.trim(start_offset)

    # -- reading ---------------------------------------------------------------------------------------

    def last_epoch(self) -> int:
        return self.log.batches[-1].epoch if self.log.batches else self._base_epoch

    def view(self) -> LogView:
        return self.log.view(self._base, self._base_epoch)

    def holds(self, offset: int, epoch: int) -> bool:
        """A snapshot stands for all below its end; else the batch is in the synced part of its segment."""
        names = {}
        for path, inode in self.files.synced_names.items():
            if path.endswith(".log"):
                names[int(path[len(FOLDER) + 1 : -4])] = inode
            elif path.endswith(SNAPSHOT_SUFFIX):
                snapshot_id = parse_snapshot_name(path[len(FOLDER) + 1 :])
                if snapshot_id is not None and snapshot_id.end_offset >= offset:
                    return inode.synced == inode.data
        below = [base for base in names if base < offset]
        if not below:
            return False
        try:
            for _, header in iter_batches(names[max(below)].synced):
                if header.next_offset >= offset:
                    return header.base_offset < offset and header.partition_leader_epoch == epoch
        except CorruptRecord:
            return False
        return False

    def durable_election(self) -> ElectionState:
        inode = self.files.synced_names.get(join(FOLDER, QUORUM_STATE))
        return ElectionState() if inode is None else decode_quorum_state(inode.synced)


def batches_of(storage: RaftStorage) -> Iterable[Batch]:
    """Every batch on the files of a replica, with its values as `data`."""
    offset = storage.log.state.log_start_offset
    while offset < storage.end_offset:
        for batch in fetched_batches(storage.read_for_replica(offset, _ALL)):
            offset = batch.next_offset
            yield with_values(batch)


def with_values(batch: Batch) -> Batch:
    """A batch as the invariants know it: with the values of its records instead of its bytes."""
    if batch.control:
        return batch._replace(data=None)
    assert isinstance(batch.data, bytes)
    return batch._replace(data=tuple(value_of(record.value or b"") for record in read_records(batch.data)))


class StorageWatcher:
    """Is told of the start, and of writes: of elections and appends afterwards, of all others before."""

    def loaded(self, storage: RaftStorage, loaded: Loaded) -> None: ...
    def persisted(self, election: ElectionState) -> None: ...
    def appended(self, batch: Batch) -> None: ...
    def truncates(self, end_offset: int) -> None: ...
    def begins_at(self, snapshot_id: SnapshotId) -> None: ...


class WatchedStorage(RaftStorage):
    """The storage of a broker, which tells what is written."""

    __slots__ = ("_disk", "_watcher")

    def __init__(
        self, disk: ShellDisk, log: PartitionLog, configured: VoterSet, watcher: StorageWatcher
    ) -> None:
        super().__init__(disk.files, log, configured)
        self._disk = disk
        self._watcher = watcher

    def load(self) -> Loaded:
        loaded = super().load()
        self._watcher.loaded(self, loaded)
        return loaded

    def write_election_state(self, state: ElectionState, membership: Membership) -> None:
        super().write_election_state(state, membership)
        self._watcher.persisted(state)

    def append_control(self, messages: Sequence[object], *, epoch: int, now_ms: int) -> int:
        base_offset = super().append_control(messages, epoch=epoch, now_ms=now_ms)
        self._appended(Batch(base_offset, self.end_offset, epoch, tuple(messages)))
        return base_offset

    def append_metadata(self, values: Sequence[bytes], *, epoch: int, now_ms: int) -> int:
        base_offset = super().append_metadata(values, epoch=epoch, now_ms=now_ms)
        self._appended(Batch(base_offset, self.end_offset, epoch, (), tuple(map(value_of, values))))
        return base_offset

    def append_replicated(self, batches: Iterable[Batch], *, now_ms: int) -> None:
        for batch in batches:
            super().append_replicated((batch,), now_ms=now_ms)
            self._appended(with_values(batch))

    def _appended(self, batch: Batch) -> None:
        self._watcher.appended(batch)
        self._disk.log.append(batch)

    def truncate(self, end_offset: int) -> None:
        self._watcher.truncates(end_offset)
        super().truncate(end_offset)
        self._disk.log.truncate(end_offset)

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        self._watcher.begins_at(snapshot_id)
        super().begin_at(snapshot_id)
        self._disk.begin_at(snapshot_id)

    def view_at(self, snapshot_id: SnapshotId, voters: VoterSet | None) -> LogView:
        view = super().view_at(snapshot_id, voters)
        self._disk.begin_with(view.membership)
        return view

    def trim(self, now_ms: int) -> None:
        super().trim(now_ms)
        self._disk.trim(self.log.state.log_start_offset)
