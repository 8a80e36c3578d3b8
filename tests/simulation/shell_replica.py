"""A replica that is the shell of a broker: `metadata/raft_host.py` and `raft/driver.py` over
`raft/storage.py`, on files in memory.

The process (`process.py`) and the part above the host are simulated: that part folds what is handed over into
a digest, of which it writes snapshots, as a broker folds it into metadata; and it appends while it leads.
Power may fail, and the disk, before any operation on files.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from pykafka_broker.cluster.image import MINIMUM_METADATA_VERSION
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.metadata.batch import MetadataBatch
from pykafka_broker.metadata.log_leadership import LeaderLog
from pykafka_broker.metadata.raft_host import RaftHost
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import Batch, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, FetchAnswer, FetchSnapshotAnswer, Request
from pykafka_broker.raft.core.quorum import NO_VOTERS, ReplicaKey, Voter
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import ElectionState, Event, Moment, RaftState, RaftStep, Received, Send
from pykafka_broker.raft.driver import DriverPorts, RaftDriver
from pykafka_broker.raft.storage import Loaded, RaftStorage
from pykafka_broker.raft.wire.fetched import fetched_batches
from tests.simulation.invariants import digest
from tests.simulation.process import PowerCut, Process, ProcessClock
from tests.simulation.replica import Kind, SnapshotContent, Surroundings
from tests.simulation.shell_disk import ShellDisk, StorageWatcher, record_of, record_with, value_in
from tests.simulation.violation import Violation, check

Result = TypeVar("Result")

#: Some five batches: followers lag and catch up.
FETCH_BYTES = 400
#: A snapshot has some four hundred bytes, and travels in parts.
SNAPSHOT_PART_BYTES = 150
HAND_OVER_MS = 3000
#: The operations that change files, and so are those before which power fails.
WRITES = frozenset(
    {
        "create",
        "pwrite",
        "truncate",
        "sync",
        "sync_directory",
        "rename",
        "remove",
        "write_file",
        "remove_tree",
    }
)


class ShellReplica(StorageWatcher):
    """A process on a disk."""

    def __init__(self, surroundings: Surroundings, node_id: int, disk: ShellDisk, settings: Settings) -> None:
        self.surroundings = surroundings
        self.world = surroundings.world
        self.node_id = node_id
        self.disk = disk
        self.settings = settings
        self.port = node_id
        self.life = 0
        self.paused_until_ms = 0
        drift = surroundings.network.profile.clock_drift
        self._clock_rate = 1 + self.world.random.uniform(-drift, drift)
        self._process: Process | None = None
        self._host: RaftHost | None = None
        self._part_above = PartAbove(self)
        #: What was decided last, until it has been carried out.
        self._decided: tuple[RaftState, Event, RaftStep] | None = None
        self._has_disk_failed = False
        self._has_failed = False
        #: Syncs that run for the driver.
        self._syncs = 0

    @property
    def state(self) -> RaftState | None:
        return None if self._host is None else self.driver.state

    @property
    def local(self) -> Voter:
        key = ReplicaKey(self.node_id, self.disk.directory_id)
        return Voter(key, {self.settings.listener: (f"node{self.node_id}", self.port)})

    @property
    def is_leader(self) -> bool:
        return self.state is not None and isinstance(self.state.role, Leader)

    @property
    def process(self) -> Process:
        """The process, which is up."""
        assert self._process is not None
        return self._process

    @property
    def host(self) -> RaftHost:
        """The host, which has booted."""
        assert self._host is not None
        return self._host

    @property
    def driver(self) -> RaftDriver:
        """The driver of the host."""
        return self.host._driver

    # -- life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._process is not None:
            return
        self.life += 1
        self._has_disk_failed = self._has_failed = False
        self._syncs = 0
        self._process = Process(  # type: ignore[abstract]  # what asyncio needs of it is there
            self.world, lambda: self.paused_until_ms, self._after_callback
        )
        self.disk.files.meanwhile = self._before_operation
        self._process.call_soon(self._boot)

    def _boot(self) -> None:
        try:
            storage = self.disk.open(self, self._run_later)
            self._part_above = PartAbove(self)
            clock = ProcessClock(self.process, self._clock_rate)
            ports = DriverPorts(clock, self._run_for_driver, self.world.random.random, self, self._decide)
            host = RaftHost(
                storage,
                self.local,
                self._part_above,
                self._part_above,
                ports,
                settings=self.settings,
                on_failure=self.fail,
            )
            host.load()
            self._host = host
            host.boot()
            self.world.note(lambda: f"n{self.node_id} starts as {self.driver.state.role}")
        except (OSError, KafkaError, MalformedFile) as error:
            if not self._has_disk_failed:
                raise Violation(f"n{self.node_id} cannot start: {error}") from error
            self._host = None
            self.fail(error)

    def loaded(self, storage: RaftStorage, loaded: Loaded) -> None:
        name = f"n{self.node_id}"
        end_offset, promised = storage.end_offset, self.disk.promised
        check(end_offset >= promised, f"{name} starts at {end_offset}, and {promised} was on its disk")
        self.disk.reload(storage, loaded)
        self.surroundings.watcher.started(self)

    def crash(self, *, lose: bool = True) -> None:
        """With `lose` power fails, or the process is killed, which loses nothing and syncs nothing."""
        if self._process is None:
            return
        cuts_power = lose and (self._has_disk_failed or self.world.happens(0.7))
        self.world.note(lambda: f"n{self.node_id} {'loses power' if cuts_power else 'is killed'}")
        if self.state is not None:
            self.disk.promised = self.state.log.flushed_offset
        self.end()
        self.paused_until_ms = 0
        if cuts_power:
            # The only voter would refuse to start if its disk kept later pages and lost earlier ones.
            is_alone = len(self.disk.view().voters.voters) == 1
            self.disk.files = self.disk.files.power_cut(None if is_alone else self.world.random)

    def stop(self) -> None:
        if self._host is not None:
            self.process.call_soon(lambda: self.process.create_task(self._stop(self.host)))

    async def _stop(self, host: RaftHost) -> None:
        host.resign(KafkaError(ErrorCode.NOT_CONTROLLER))
        await host.hand_over(HAND_OVER_MS)
        await host.close()
        self.world.note(lambda: f"n{self.node_id} has stopped")
        self.crash(lose=False)
        self.surroundings.ended(self)

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process = self._host = self._decided = None
        self.life += 1
        self.disk.files.meanwhile = None

    def lose_disk(self, directory_id: bytes) -> None:
        self.disk = ShellDisk(directory_id, Membership(NO_VOTERS))

    def fail(self, error: Exception) -> None:
        """A broker ends when its metadata log fails, or cannot be opened."""
        if not self._has_disk_failed:
            raise Violation(f"n{self.node_id} has stopped: {error!r}") from error
        self.world.note(lambda: f"n{self.node_id} ends: {error}")
        self._has_failed = True
        life = self.life

        def end() -> None:
            if life == self.life:
                self.crash()
                self.surroundings.ended(self)

        self.world.at(0, end)

    def _before_operation(self, operation: str, path: str) -> None:
        """Power fails before an operation on files, or the operation does."""
        profile = self.surroundings.network.profile
        if operation not in WRITES:
            return
        if self.world.happens(profile.power_cut):
            self.world.note(lambda: f"n{self.node_id} loses power before {operation} of {path}")
            self.crash()
            self.surroundings.ended(self)
            raise PowerCut
        if self.world.happens(profile.disk_error):
            self.world.note(lambda: f"n{self.node_id} cannot {operation} {path}")
            self._has_disk_failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    # -- the ports of the driver -----------------------------------------------------------------------

    def _decide(self, state: RaftState, event: Event, moment: Moment) -> RaftStep:
        self._after_callback()
        step = transitions.step(state, event, moment)
        self.world.note(lambda: f"n{self.node_id} {event} -> {step.state.role}")
        self._decided = (state, event, step)
        return step

    def _after_callback(self) -> None:
        """What was decided has been carried out: tell of it."""
        if self._decided is not None:
            (before, event, step), self._decided = self._decided, None
            if self._has_failed:
                return
            watcher = self.surroundings.watcher
            for reply in step.reply:
                if isinstance(event, Received) and event.token == reply.token:
                    watcher.replied(self, event.request, reply.answer)
            watcher.heard(self, before, event)
            self.surroundings.stepped(self, before, step)

    def _run_for_driver(self, job: Callable[[], Result]) -> Awaitable[Result]:
        """A sync, or the end of a received snapshot."""
        self._syncs += 1
        done = asyncio.ensure_future(self._run_blocking(job))
        done.add_done_callback(self._synced)
        return done

    def _synced(self, _: object) -> None:
        self._syncs -= 1

    def _run_blocking(self, job: Callable[[], Result]) -> Awaitable[Result]:
        return self.process.run_blocking(job, self.surroundings.network.profile.flush_ms // 2)

    def _run_later(self, job: Callable[[], object]) -> None:
        self._run_blocking(job)

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        """Send a request; it is answered once, if need be with None when it is too late."""
        self.surroundings.watcher.asks(self, send.request)
        process = self.process
        is_answered = False

        def answer_once(answer: Answer | None) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                process.call_soon(answered, answer)

        self.surroundings.carry(self, send, answer_once)
        process.call_after(self.settings.request_timeout_ms, answer_once, None)

    async def close(self) -> None:
        """Requests that are on their way are answered no more: the process is about to end."""

    # -- requests --------------------------------------------------------------------------------------

    def ask(self, request: Request, reply: Callable[[Answer], None]) -> None:
        self.process.call_soon(self._take, request, reply)

    def _take(self, request: Request, reply: Callable[[Answer], None]) -> None:
        self.world.note(lambda: f"n{self.node_id} gets {request}")
        self.process.create_task(self._answer(self.host.request(request), request, reply))

    async def _answer(
        self, answered: asyncio.Future[Answer], request: Request, reply: Callable[[Answer], None]
    ) -> None:
        """What the handlers of a broker do: they add records, and parts of snapshots."""
        storage = self.driver.storage
        try:
            answer = await answered
            if isinstance(answer, FetchAnswer) and answer.read_from is not None:
                read = partial(storage.read_for_replica, answer.read_from, FETCH_BYTES)
                batches = fetched_batches(await self._run_blocking(read))
                if self.driver.epoch != answer.current.epoch:
                    batches = ()
                answer = answer._replace(batches=batches, read_from=None)
            elif isinstance(answer, FetchSnapshotAnswer) and answer.snapshot_id is not None:
                part = partial(
                    storage.read_snapshot_part, answer.snapshot_id, answer.position, answer.max_bytes
                )
                answer = answer._replace(data=self._perhaps_damaged(await self._run_blocking(part)))
        except (KafkaError, FileNotFoundError):
            return
        self.world.note(lambda: f"n{self.node_id} answers {request}: {answer}")
        reply(answer)

    def _perhaps_damaged(self, data: bytes) -> bytes:
        if data and self.world.happens(self.surroundings.network.profile.damaged_snapshot / 4):
            return data[:-1] + bytes((data[-1] ^ 1,))
        return data

    def append(self, count: int) -> None:
        records = [record_with(self.surroundings.next_value()) for _ in range(count)]
        self.process.call_soon(self._part_above.append, records)

    def upgrade(self) -> None:
        """The driver does not know this event yet."""

    # -- snapshots -------------------------------------------------------------------------------------

    def take_snapshot(self) -> None:
        if self._host is not None:
            self.process.call_soon(lambda: self.process.create_task(self._part_above.write_snapshot()))

    def run_blocking(self, job: Callable[[], Result]) -> Awaitable[Result]:
        """Run a job of the part above."""
        return self._run_blocking(job)

    # -- what storage tells ----------------------------------------------------------------------------

    def persisted(self, election: ElectionState) -> None:
        self.surroundings.watcher.persisted(self, election)

    def appended(self, batch: Batch) -> None:
        self.surroundings.watcher.appends(self, batch)

    def truncates(self, end_offset: int) -> None:
        self.surroundings.watcher.truncates(self, end_offset)
        check(self._syncs == 0, f"n{self.node_id} truncates while a sync runs")

    def begins_at(self, snapshot_id: SnapshotId) -> None:
        check(self._syncs == 0, f"n{self.node_id} begins at {snapshot_id} while a sync runs")


class PartAbove:
    """Gets the committed records, writes snapshots of them, and appends records while its node leads."""

    def __init__(self, replica: ShellReplica) -> None:
        self._replica = replica
        self._content = SnapshotContent(SnapshotId(0, 0), 0)
        self._is_writing = False
        #: The log, while this node leads it.
        self._led: LeaderLog | None = None

    async def write_snapshot(self) -> None:
        """As `metadata/snapshotter.py` does."""
        replica, (snapshot_id, content) = self._replica, self._content
        storage = replica.driver.storage
        if self._is_writing or snapshot_id.end_offset == 0 or snapshot_id in storage.snapshots():
            return
        self._is_writing = True
        values = [record_of(content), *(record_of(replica.node_id) for _ in range(8))]
        membership = replica.host.membership_below(snapshot_id.end_offset)
        write = partial(
            storage.write_snapshot, snapshot_id, values, membership, last_timestamp_ms=0, now_ms=0
        )
        try:
            await replica.run_blocking(write)
            if replica.world.happens(0.7):
                storage.trim(now_ms=0)
        except OSError:
            return
        finally:
            self._is_writing = False
        replica.host.snapshots_changed()

    # -- what the host tells ---------------------------------------------------------------------------

    def start_over(self, snapshot_id: SnapshotId, records: Iterable[object]) -> None:
        """Start over from a snapshot."""
        content = SnapshotContent(snapshot_id, value_in(next(iter(records))))
        self._replica.surroundings.watcher.installs(self._replica, snapshot_id, content)
        self._content = content

    def replay(self, batch: MetadataBatch) -> None:
        """Take in a batch that the log of the only voter held at the start."""
        self.commit(batch)

    def commit(self, batch: MetadataBatch) -> None:
        """Take in a committed batch."""
        (end_offset, _), folded = self._content
        name = f"n{self._replica.node_id}"
        check(
            end_offset == batch.base_offset,
            f"{name} hands over the records of {batch.base_offset} after those below {end_offset}",
        )
        for record in batch.records:
            folded = digest(folded, batch.epoch, value_in(record))
        self._content = SnapshotContent(SnapshotId(batch.next_offset, batch.epoch), folded)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Everything below is committed, and has been handed over."""
        replica, ((end_offset, _), folded) = self._replica, self._content
        watcher = replica.surroundings.watcher
        watcher.advanced(replica, high_watermark)
        known = watcher.digests[end_offset]
        check(folded == known, f"n{replica.node_id} hands over other records below {high_watermark}")

    # -- leadership ------------------------------------------------------------------------------------

    def prepare(self) -> None: ...

    def begin(self, log: LeaderLog) -> None:
        """The node leads."""
        check(self._led is None, f"n{self._replica.node_id} begins to lead twice")
        self._led = log

    def end(self, error: KafkaError) -> None:
        """The node does not lead any more."""
        self._led = None

    def append(self, records: Sequence[object]) -> None:
        """Append records of a client, if the node leads."""
        log = self._led
        if log is None:
            return
        try:
            log.append(records, MINIMUM_METADATA_VERSION)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                self._replica.fail(error)
            return
        check(self._led is log, f"n{self._replica.node_id} leads no more while it appends")


def _maker(surroundings: Surroundings) -> Callable[[int, bytes, Membership, Settings], ShellReplica]:
    def make(node_id: int, directory_id: bytes, first: Membership, settings: Settings) -> ShellReplica:
        settings = settings._replace(snapshot_part_bytes=SNAPSHOT_PART_BYTES)
        return ShellReplica(surroundings, node_id, ShellDisk(directory_id, first), settings)

    return make


SHELL = Kind("shell", _maker, max_events=300_000)
