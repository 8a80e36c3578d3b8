"""A replica that carries out the steps of `raft/core` on a simulated disk and network, in their order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import Batch, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, FetchAnswer, FetchSnapshotAnswer, Request
from pykafka_broker.raft.core.quorum import NO_VOTERS, ReplicaKey, Voter
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import (
    Answered,
    Appended,
    Chunk,
    Event,
    Flushed,
    Moment,
    RaftState,
    RaftStep,
    Received,
    Reply,
    Send,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotsChanged,
    Stop,
    TimePassed,
    Unanswered,
    UpgradeKRaftVersion,
)
from tests.simulation.core_disk import CoreDisk, Snapshot
from tests.simulation.replica import Kind, SnapshotContent, Surroundings
from tests.simulation.violation import check

#: At most so many batches in an answer to Fetch: followers lag and catch up.
BATCHES_PER_FETCH = 5
#: Files of snapshots have some twenty bytes, and travel in parts.
SNAPSHOT_PART_BYTES = 7
#: A node waits so long for another voter to lead when it stops.
HAND_OVER_MS = 3000


class CoreReplicas:
    """The core replicas of one quorum; `snapshots` are those that they have written, by their files."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.snapshots: dict[bytes, Snapshot] = {}
        self.tokens = count(1)

    def make(self, node_id: int, directory_id: bytes, first: Membership, settings: Settings) -> CoreReplica:
        """Another replica."""
        settings = settings._replace(snapshot_part_bytes=SNAPSHOT_PART_BYTES)
        return CoreReplica(self, node_id, CoreDisk(directory_id, first), settings)


class CoreReplica:
    """A process on a disk."""

    def __init__(self, replicas: CoreReplicas, node_id: int, disk: CoreDisk, settings: Settings) -> None:
        self.replicas = replicas
        self.surroundings = quorum = replicas.surroundings
        self.world = quorum.world
        self.node_id = node_id
        self.disk = disk
        self.settings = settings
        self.port = node_id
        self.state: RaftState | None = None
        self.life = 0
        self.paused_until_ms = 0
        drift = quorum.network.profile.clock_drift
        self._clock_rate = 1 + quorum.world.random.uniform(-drift, drift)
        self._timer = 0
        self._is_flushing = False
        #: The requests that have no answer yet, by token, and where their answers go.
        self._asked: dict[int, tuple[Request | UpgradeKRaftVersion, Callable[[Answer], None]]] = {}

    @property
    def local(self) -> Voter:
        """This replica as a voter."""
        key = ReplicaKey(self.node_id, self.disk.directory_id)
        return Voter(key, {self.settings.listener: (f"node{self.node_id}", self.port)})

    @property
    def is_leader(self) -> bool:
        """Whether it thinks it leads."""
        return self.state is not None and isinstance(self.state.role, Leader)

    # -- life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Boot from the disk."""
        if self.state is not None:
            return
        self.life += 1
        self._is_flushing = False
        self._asked.clear()
        self.disk.sync()
        view = self.disk.view()._replace(flushed_offset=self.disk.log.end_offset)
        step = transitions.boot(self.local, self.disk.election, view, self._moment(), self.settings)
        self.world.note(lambda: f"n{self.node_id} starts as {step.state.role}")
        self.surroundings.watcher.started(self)
        self._carry_out(step)
        self.hand_in(TimePassed())

    def crash(self, *, lose: bool = True) -> None:
        """Stop at once; with `lose`, not all that is not synced survives."""
        if self.state is None:
            return
        self.world.note(lambda: f"n{self.node_id} crashes")
        self.state = None
        self.life += 1
        self.paused_until_ms = 0
        if lose:
            self.disk.crash(self.world.random)
        else:
            self.disk.sync()

    def stop(self) -> None:
        life = self.life
        self.hand_in(Stop())
        self.world.at(HAND_OVER_MS, lambda: self._end(life))

    def _end(self, life: int) -> None:
        if self.life == life and self.state is not None and self.state.stopping:
            self.crash(lose=False)
            self.surroundings.ended(self)

    def end(self) -> None:
        self.state = None
        self.life += 1

    def lose_disk(self, directory_id: bytes) -> None:
        self.disk = CoreDisk(directory_id, Membership(NO_VOTERS))

    # -- events ----------------------------------------------------------------------------------------

    def hand_in(self, event: Event) -> None:
        """Have the core take an event, now or when the pause of the process is over."""
        if self.state is None:
            return
        if self.world.now_ms < self.paused_until_ms:
            life = self.life
            self.world.at(
                self.paused_until_ms - self.world.now_ms,
                lambda: self.hand_in(event) if life == self.life else None,
            )
            return
        step = transitions.step(self.state, event, self._moment())
        self.world.note(lambda: f"n{self.node_id} {event} -> {step.state.role}")
        before = self.state
        self._carry_out(step)
        self.surroundings.watcher.heard(self, before, event)
        self.surroundings.stepped(self, before, step)
        if step.state.stopping and transitions.may_stop(step.state):
            life = self.life
            self.world.at(0, lambda: self._end(life))

    def ask(self, request: Request, reply: Callable[[Answer], None]) -> None:
        token = next(self.replicas.tokens)
        self._asked[token] = (request, reply)
        self.world.note(lambda: f"n{self.node_id} gets {request} as #{token}")
        self.hand_in(Received(token, request))

    def upgrade(self) -> None:
        token = next(self.replicas.tokens)
        upgrade = UpgradeKRaftVersion(token)
        self._asked[token] = (upgrade, lambda answer: None)
        self.hand_in(upgrade)

    def _moment(self) -> Moment:
        return Moment(self._clock_ms, self.world.random.random())

    @property
    def _clock_ms(self) -> int:
        """The time of its own clock."""
        return int(self.world.now_ms * self._clock_rate)

    def append(self, count: int) -> None:
        """As leader, append a batch of a client."""
        if self.world.now_ms < self.paused_until_ms:
            return
        if self.state is None or not isinstance(self.state.role, Leader) or self.state.stopping:
            return
        base_offset = self.disk.log.end_offset
        values = tuple(self.surroundings.next_value() for _ in range(count))
        batch = Batch(base_offset, base_offset + count, self.state.role.epoch, (), values)
        self._write(batch)
        self.hand_in(Appended(batch.next_offset))

    def take_snapshot(self) -> None:
        """Write a snapshot of all that is committed, and perhaps delete the log before an older one."""
        if self.state is None or not self.state.high_watermark or self.world.now_ms < self.paused_until_ms:
            return
        end_offset = self.state.high_watermark
        last = self.disk.log.batch_at(end_offset - 1)
        if last is None or last.next_offset != end_offset:
            return
        snapshot_id = SnapshotId(end_offset, last.epoch)
        if snapshot_id not in self.disk.snapshots:
            self.disk.snapshots[snapshot_id] = self._snapshot(self.state, snapshot_id)
        if self.world.happens(0.7):
            oldest = self.world.random.choice(sorted(self.disk.snapshots))
            if oldest.end_offset > self.disk.log.start_offset:
                self.disk.trim(oldest.end_offset)
        self.hand_in(SnapshotsChanged(self.disk.log.start_offset, self.disk.snapshot_files()))

    def _snapshot(self, state: RaftState, snapshot_id: SnapshotId) -> Snapshot:
        """A snapshot of all below its end: no other replica's has the same bytes."""
        known = self.replicas.snapshots
        file = f"{snapshot_id.end_offset}-{snapshot_id.epoch}-of-{self.node_id}-{len(known)}".encode()
        membership = state.log.membership_below(snapshot_id.end_offset)
        in_log = membership._replace(offset=min(membership.offset, snapshot_id.end_offset - 1))
        digest = self.surroundings.watcher.digests[snapshot_id.end_offset]
        known[file] = Snapshot(SnapshotContent(snapshot_id, digest), in_log, file)
        return known[file]

    # -- steps -----------------------------------------------------------------------------------------

    def _carry_out(self, step: RaftStep) -> None:
        watcher = self.surroundings.watcher
        if step.persist is not None:
            watcher.persisted(self, step.persist)
            self.persist(step)
        self.state = step.state
        if step.truncate is not None:
            watcher.truncates(self, step.truncate)
            check(not self._is_flushing, f"n{self.node_id} truncates while a sync runs")
            self.disk.truncate(step.truncate)
        if step.append:
            end_offset = self.disk.log.end_offset
            batch = Batch(end_offset, end_offset + len(step.append), step.state.role.epoch, step.append)
            self._write(batch)
        for batch in step.replicate:
            self._write(batch)
        self._flush_soon()
        if step.receive is not None:
            self._receive(step.receive)
        for send in step.send:
            self._send(send)
        for reply in step.reply:
            self._reply(reply)
        if step.advance is not None:
            watcher.advanced(self, step.advance)
        self._set_timer()

    def persist(self, step: RaftStep) -> None:
        """Write quorum-state, synced."""
        assert step.persist is not None
        self.disk.election = step.persist

    def _write(self, batch: Batch) -> None:
        self.surroundings.watcher.appends(self, batch)
        self.disk.append(batch)

    def _flush_soon(self) -> None:
        """One sync at a time; what is written while it runs is for the next."""
        state = self.state
        if self._is_flushing or state is None or state.log.flushed_offset >= self.disk.log.end_offset:
            return
        self._is_flushing = True
        life, written, end_offset = self.life, self.disk.written, self.disk.log.end_offset

        def flushed() -> None:
            if life != self.life:
                return
            if self.world.now_ms < self.paused_until_ms:
                self.world.at(self.paused_until_ms - self.world.now_ms, flushed)
                return
            self._is_flushing = False
            self.disk.sync_until(written)
            self.hand_in(Flushed(end_offset))
            self._flush_soon()

        self.world.at(self.world.random.randint(0, self.surroundings.network.profile.flush_ms), flushed)

    def _receive(self, chunk: Chunk) -> None:
        if chunk.position == 0:
            self.disk.received = b""
        assert len(self.disk.received) == chunk.position
        self.disk.received += chunk.data
        if not chunk.is_last:
            return
        if self.world.happens(self.surroundings.network.profile.damaged_snapshot):
            self.hand_in(SnapshotRefused())
            return
        snapshot = self.replicas.snapshots[self.disk.received]
        self.surroundings.watcher.installs(self, chunk.snapshot_id, snapshot.content)
        check(not self._is_flushing, f"n{self.node_id} loads a snapshot while a sync runs")
        self.install(snapshot)
        view = self.disk.view()
        self.hand_in(SnapshotInstalled(view._replace(flushed_offset=view.end_offset)))

    def install(self, snapshot: Snapshot) -> None:
        self.disk.install(snapshot)

    # -- the network -----------------------------------------------------------------------------------

    def _send(self, send: Send) -> None:
        self.surroundings.watcher.asks(self, send.request)
        node_id, request_id = send.to.node_id, send.request_id

        def answered(answer: Answer | None) -> None:
            event: Event = Unanswered(node_id, request_id)
            self.hand_in(event if answer is None else Answered(node_id, request_id, answer))

        self.surroundings.carry(self, send, answered)

    def _reply(self, reply: Reply) -> None:
        answer = reply.answer
        if isinstance(answer, FetchAnswer) and answer.read_from is not None:
            batches = self.disk.log.read(answer.read_from, BATCHES_PER_FETCH)
            answer = answer._replace(batches=batches, read_from=None)
        elif isinstance(answer, FetchSnapshotAnswer) and answer.snapshot_id is not None:
            file = self.disk.snapshots[answer.snapshot_id].file
            part = file[answer.position : answer.position + answer.max_bytes]
            answer = answer._replace(data=part)
        request, reply_to = self._asked.pop(reply.token)
        self.world.note(lambda: f"n{self.node_id} answers #{reply.token}: {answer}")
        if not isinstance(request, UpgradeKRaftVersion):
            self.surroundings.watcher.replied(self, request, answer)
        reply_to(answer)

    def _set_timer(self) -> None:
        assert self.state is not None
        self._timer += 1
        timer, life = self._timer, self.life
        now_ms = self._clock_ms
        deadline_ms = transitions.next_deadline_ms(self.state, now_ms)
        if deadline_ms is not None:
            delay_ms = int((deadline_ms - now_ms) / self._clock_rate) + self.world.random.randint(1, 3)

            def fire() -> None:
                if timer == self._timer and life == self.life:
                    self.hand_in(TimePassed())

            self.world.at(delay_ms, fire)


CORE = Kind("core", lambda surroundings: CoreReplicas(surroundings).make, max_events=60_000)
