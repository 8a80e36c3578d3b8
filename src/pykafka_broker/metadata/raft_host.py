"""The replica of the metadata log on this node; it hands committed records to a listener.

    load    the newest snapshot, and other records known to be committed    -> listener.start_over, replay
    boot    take the role that the files give                               -> leadership.begin, if it leads
    commit  everything below an offset is committed                         -> listener.commit, batch by batch

The listener gets committed records in the order of the log. Records that this node appended as leader are
handed over without decoding, all others are read from the log and decoded once.

At a start the high watermark is unknown until the quorum has a leader, so only the snapshot is handed over.
The whole log of an only voter is committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from pykafka_broker.cluster.image import CorruptMetadataError
from pykafka_broker.cluster.records import MAX_RECORDS_PER_OPERATION, decode_record, encode_record
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.clock import processing_ns
from pykafka_broker.metadata.batch import AppendedBatches, MetadataBatch
from pykafka_broker.metadata.log_leadership import MetadataLeadership
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core.log_view import Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, ChangeAnswer, Current, Request
from pykafka_broker.raft.core.quorum import Address, Endpoints, Voter
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.settings import DEFAULTS, Settings
from pykafka_broker.raft.core.state import RaftState
from pykafka_broker.raft.driver import DriverPorts, RaftDriver
from pykafka_broker.raft.quorum_description import QuorumDescription
from pykafka_broker.raft.quorum_lines import QuorumLines
from pykafka_broker.raft.storage import Loaded, RaftStorage, StoredSnapshot

logger = logging.getLogger("org.apache.kafka.raft.KafkaRaftClient")


class MetadataListener(Protocol):
    """Gets the records of the metadata log, in order."""

    def start_over(self, snapshot_id: SnapshotId, records: Iterable[object]) -> None:
        """Start over from a snapshot, which replaces all records before it."""
        ...

    def replay(self, batch: MetadataBatch) -> None:
        """Replay a batch that the log held at the start; it may be published with the next commit."""
        ...

    def commit(self, batch: MetadataBatch) -> None:
        """Replay a batch, and publish it and everything before it."""
        ...

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is committed, and has been handed over."""
        ...


class RaftHost:
    """Owns the replica; the `LeaderLog` of this node's controller.

    `leadership` is told when this node leads; None on a node that never does. `on_failure` is called when the
    metadata log cannot be written or understood: a node without metadata must stop. `reached_at` has the
    endpoints of an only voter, whose entry among the voters may be out of date, because no other node needs
    it; None in a quorum of several, where the entries are kept up to date.
    """

    def __init__(
        self,
        storage: RaftStorage,
        local: Voter,
        listener: MetadataListener,
        leadership: MetadataLeadership | None,
        ports: DriverPorts,
        *,
        settings: Settings = DEFAULTS,
        reached_at: Endpoints | None = None,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._storage = storage
        self._local = local
        self._reached_at = reached_at
        self._listener = listener
        self._leadership = leadership
        self._report_failure = on_failure
        self._driver = RaftDriver(storage, local, self, ports, settings)
        #: None on an only voter, which logs no such lines.
        self._lines: QuorumLines | None = None
        if ports.peers is not None:
            self._lines = QuorumLines(local.key.node_id, ports.clock.now_ms)
        self._loaded: Loaded | None = None
        #: `fail` was called: nothing more is handed over, because an image without the records that could not
        #: be read may lack topics, whose logs would be deleted.
        self._has_failed = False
        #: The offset of the first batch that has not been handed over.
        self._next_offset = 0
        self._appended = AppendedBatches()
        #: The epoch that `leadership` was told of.
        self._led_epoch: int | None = None
        #: Decisions that were appended here and then committed, and the time that their commits took.
        self.commits = 0
        self.commit_ns = 0
        #: The ends of those not committed yet, and when they were appended.
        self._uncommitted: deque[tuple[int, int]] = deque()
        self._leader_watchers: list[Callable[[], None]] = []
        #: The number of leaders that this node has learnt of, and the epoch and id of the last one.
        self.new_leaders = 0
        self._last_leader: tuple[int, int] | None = None

    @property
    def state(self) -> RaftState | None:
        """The replica as it is now; None before the boot."""
        return self._driver.known_state

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        return self._driver.epoch

    @property
    def log(self) -> PartitionLog:
        """The metadata log on this node."""
        return self._storage.log

    @property
    def end_offset(self) -> int:
        """The offset of the next record; records below it may not be committed yet."""
        return self._storage.end_offset

    @property
    def kraft_version(self) -> int:
        """1 if the log names the voters, 0 if each node's configuration does, or before the log is read."""
        return self._driver.kraft_version

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """The node ids of the voters, by the newest records of the log."""
        return tuple(self._driver.state.log.voters.voters)

    @property
    def leader_id(self) -> int:
        """The id of the leader; -1 while none is known."""
        return self._driver.leader_id

    @property
    def current(self) -> Current:
        """The epoch and its known leader."""
        return self._driver.current

    @property
    def is_majority_gone(self) -> bool:
        """Whether the voters whose addresses do not refuse connections are no majority."""
        return self._driver.view.is_majority_gone

    @property
    def leader_address(self) -> Address | None:
        """The leader's address; None if unknown, and on the leader itself."""
        return self._driver.leader_address

    @property
    def was_led(self) -> bool:
        """Whether this node led the quorum, or its leader answered it, after the last step."""
        return self._driver.view.was_led

    def watch_leader(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` if the leader or `was_led` may have changed, or this controller becomes active."""
        self._leader_watchers.append(watcher)

    def membership_below(self, end_offset: int) -> Membership:
        """The voters by the records below an offset, as a snapshot of it names them."""
        return self._driver.state.log.membership_below(end_offset)

    def snapshots_changed(self) -> None:
        """A snapshot has been written, or old ones removed with the log before them."""
        self._driver.snapshots_changed()

    def request(self, request: Request) -> asyncio.Future[Answer]:
        """Take a request of another replica, or of an administrator; the future gets the answer.

        The future fails with KafkaError if the replica has stopped. A caller may cancel it.
        """
        return self._driver.request(request)

    def upgrade_kraft_version(self, *, validate_only: bool) -> asyncio.Future[ChangeAnswer]:
        """Move the voters of the configuration into the log (kraft.version 1), or only check that."""
        return self._driver.upgrade_kraft_version(validate_only=validate_only)

    def describe_quorum(self) -> QuorumDescription:
        """The quorum as it is now.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, this node does not lead the log.
        """
        status = self._driver.view.describe()
        if status is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return QuorumDescription(status, self.voter_endpoints)

    def describe_leaderless(self, silence_ms: int) -> QuorumDescription | None:
        """The quorum as this node knew it `silence_ms` ago; None if it leads, or its leader answers it."""
        status = self._driver.view.describe_leaderless(silence_ms)
        return None if status is None else QuorumDescription(status, self.voter_endpoints)

    def log_wait(self, silence_ms: int) -> None:
        """Log what this node waits for: a leader, if there is none, and which of the other voters are
        silent (`QuorumView.silent`), or the records that its start lacks. An only voter logs nothing.
        """
        if self._lines is None:
            return
        view, high_watermark = self._driver.view, self._driver.high_watermark
        if view.was_led:
            self._lines.waits(self._next_offset, high_watermark)
        else:
            silent = view.silent(silence_ms)
            self._lines.waits_for_leader(high_watermark, view.unchanged_ms, view.others, silent)

    def log_end_of_wait(self) -> None:
        """Log that the wait of which `log_wait` has told is over."""
        if self._lines is not None:
            self._lines.wait_is_over(self.leader_id, self.epoch)

    @property
    def voter_endpoints(self) -> dict[int, Endpoints]:
        """Where the voters are reached, by the newest records of the log."""
        voters = self._driver.state.log.voters.voters
        endpoints = {node_id: voter.endpoints for node_id, voter in voters.items()}
        if self._reached_at is not None:
            endpoints[self._local.key.node_id] = self._reached_at
        return endpoints

    # -- life ------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the files, and hand over the records known to be committed. May take long.

        Raises:
            CorruptMetadataError, MalformedFile: the files cannot be understood.
        """
        loaded = self._loaded = self._storage.load()
        self._next_offset = loaded.start_offset
        if loaded.snapshot is not None:
            snapshot_id, values = loaded.snapshot
            self._listener.start_over(snapshot_id, (decode_record(value) for value in values))
        if loaded.view.voters.is_only_voter(self._local.key):
            for batch in self._read(loaded.view.end_offset):
                self._listener.replay(batch)
                self._next_offset = batch.next_offset

    def boot(self) -> None:
        """Take the role that the files give; an only voter leads when this returns.

        Raises:
            OtherVotersError: the log names other voters.
            OSError, KafkaError: the disk failed.
        """
        assert self._loaded is not None, "not loaded"
        if self._leadership is not None:
            self._leadership.prepare()
        loaded, self._loaded = self._loaded, None
        self._driver.boot(loaded)

    def resign(self, error: KafkaError) -> None:
        """Stop leading: the node stops, or its log has failed. Appended records may still be committed."""
        leadership, self._leadership = self._leadership, None
        if leadership is not None:
            self._forget_appended()
            leadership.end(error)

    def fail(self, what: str, error: Exception) -> None:
        """The log can no longer be written or read: tell the controller and the node."""
        logger.error("The metadata log cannot be %s: %s", what, error)
        self._has_failed = True
        self.resign(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        self._report_failure(error)

    async def hand_over(self, timeout_ms: int) -> None:
        """Start no more elections; return when another voter leads, or after the time-out."""
        await self._driver.hand_over(timeout_ms)

    async def close(self) -> None:
        """Return when everything appended is on disk, or cannot be."""
        await self._driver.close()

    # -- the log ---------------------------------------------------------------------------------------

    def append(self, records: Sequence[object], metadata_version: int) -> int:
        """Append the records of one decision; return the log end offset after them.

        The records of a user's request are one batch, all or nothing. A broker that comes or goes may change
        more partitions than fit into one batch; each of these records is valid on its own.

        Raises:
            KafkaError: this node does not lead the log, or the log could not be written.
        """
        base_offset = self.end_offset
        values = [encode_record(record, metadata_version) for record in records]
        end_offset = self._driver.append(values[:MAX_RECORDS_PER_OPERATION])
        for start in range(MAX_RECORDS_PER_OPERATION, len(values), MAX_RECORDS_PER_OPERATION):
            try:
                end_offset = self._driver.append(values[start : start + MAX_RECORDS_PER_OPERATION])
            except KafkaError as error:
                # Only a part of the decision is in the log, so the state in memory differs from it.
                self.fail("written", error)
                raise
        self._appended.add(MetadataBatch(base_offset, end_offset, self.epoch, records))
        self._uncommitted.append((end_offset, processing_ns()))
        return end_offset

    # -- calls of the driver ---------------------------------------------------------------------------

    def on_failure(self, error: Exception) -> None:
        """The replica has stopped: its disk has failed."""
        self.fail("written", error)

    def on_role(self) -> None:
        """The replica has another role."""
        if self._lines is not None:
            self._lines.has_role(self._driver.state.role)
        self._tell_leadership()
        self._tell_watchers()

    def on_led(self) -> None:
        """The leader begins to answer, or ceases to."""
        self._tell_watchers()

    def on_snapshot(self, snapshot: StoredSnapshot) -> None:
        """The log restarts at the end of a snapshot that the leader has sent."""
        if self._has_failed:
            return
        snapshot_id, values = snapshot
        self._next_offset = snapshot_id.end_offset
        try:
            self._listener.start_over(snapshot_id, (decode_record(value) for value in values))
        except CorruptMetadataError as error:
            self.fail("understood", error)

    def on_commit(self, offset: int) -> None:
        """Everything below `offset` is committed: hand over the remaining batches below it."""
        if self._has_failed:
            return
        while self._uncommitted and self._uncommitted[0][0] <= offset:
            self.commits += 1
            self.commit_ns += processing_ns() - self._uncommitted.popleft()[1]
        try:
            for batch in self._committed(offset):
                self._next_offset = batch.next_offset
                self._listener.commit(batch)
        except (CorruptMetadataError, MalformedFile) as error:
            self.fail("understood", error)
            return
        if self._lines is not None:
            self._lines.has_voters(self.membership_below(offset))
        self._listener.high_watermark_moved(offset)
        self._tell_leadership()

    def _committed(self, offset: int) -> Iterator[MetadataBatch]:
        """Yield the batches below `offset` that have not been handed over."""
        for batch in self._appended.take(offset):
            yield from self._read(batch.base_offset)
            yield batch
        next_appended = self._appended.base_offset
        yield from self._read(offset if next_appended is None else min(offset, next_appended))

    def _read(self, end_offset: int) -> Iterator[MetadataBatch]:
        """Read and decode the batches of the log below `end_offset` that have not been handed over."""
        if self._next_offset < end_offset:
            for base_offset, next_offset, epoch, values in self._storage.read(self._next_offset, end_offset):
                records = () if values is None else tuple(decode_record(value) for value in values)
                yield MetadataBatch(base_offset, next_offset, epoch, records)

    def _tell_leadership(self) -> None:
        """Tell the controller when the leadership begins, after the records of earlier leaders, and when it
        ends.
        """
        if self._leadership is None:
            return
        role = self._driver.state.role
        leads = isinstance(role, Leader) and role.start_offset <= self._next_offset
        epoch = role.epoch if leads else None
        if epoch == self._led_epoch:
            return
        if self._led_epoch is not None:
            self._forget_appended()
            if self._lines is not None:
                self._lines.controller_ends(self._led_epoch, role)
            self._leadership.end(KafkaError(ErrorCode.NOT_CONTROLLER))
        self._led_epoch = epoch
        if epoch is not None:
            if self._lines is not None:
                self._lines.controller_begins(epoch, self.end_offset)
            self._leadership.begin(self)
            self._tell_watchers()

    def _forget_appended(self) -> None:
        """The next leader may replace what is not committed: the log will show it."""
        self._appended.forget()
        self._uncommitted.clear()

    def _tell_watchers(self) -> None:
        leader = self.epoch, self.leader_id
        if self.leader_id >= 0 and leader != self._last_leader:
            self._last_leader = leader
            self.new_leaders += 1
        for watcher in self._leader_watchers:
            watcher()
