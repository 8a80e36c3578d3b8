"""One replica: it carries out the steps of `raft/core` on a simulated disk and network, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import Batch, Membership, SnapshotId
from pykafka_broker.raft.core.messages import FetchAnswer, FetchSnapshotAnswer, Request
from pykafka_broker.raft.core.quorum import Address, ReplicaKey, Voter
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import (
    Answered,
    Appended,
    Chunk,
    ElectionState,
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
    TimePassed,
    Unanswered,
)
from tests.simulation.disk import Disk, SnapshotContent
from tests.simulation.network import Network
from tests.simulation.violation import check
from tests.simulation.world import World

#: At most so many batches in an answer to Fetch: followers lag and catch up.
BATCHES_PER_FETCH = 5


class Watcher(Protocol):
    """Is told of all that a replica does; raises a Violation."""

    def started(self, replica: Replica) -> None: ...
    def persisted(self, replica: Replica, election: ElectionState) -> None: ...
    def appends(self, replica: Replica, batch: Batch) -> None: ...
    def truncates(self, replica: Replica, end_offset: int) -> None: ...
    def installs(self, replica: Replica, snapshot_id: SnapshotId, content: SnapshotContent) -> None: ...
    def advanced(self, replica: Replica, offset: int) -> None: ...
    def heard(self, replica: Replica, before: RaftState, event: Event) -> None: ...


class Surroundings(Protocol):
    """The quorum, as its replicas see it."""

    world: World
    network: Network
    contents: dict[bytes, SnapshotContent]

    @property
    def watcher(self) -> Watcher: ...
    def next_value(self) -> int: ...
    def disk_of(self, key: ReplicaKey) -> Disk: ...
    def at_address(self, address: Address) -> Replica | None: ...
    def await_reply(self, answer: Callable[[Reply, int], None]) -> int: ...
    def received(self, event: Received) -> None: ...
    def replied(self, replica: Replica, reply: Reply) -> None: ...
    def stepped(self, replica: Replica, before: RaftState, step: RaftStep) -> None: ...
    def make_snapshot(
        self, replica: Replica, snapshot_id: SnapshotId, membership: Membership
    ) -> SnapshotContent: ...


class Replica:
    """A process on a disk; it is down while `state` is None. A restart is another `life`."""

    def __init__(self, quorum: Surroundings, node_id: int, disk: Disk, settings: Settings) -> None:
        self.quorum = quorum
        self.world = quorum.world
        self.node_id = node_id
        self.disk = disk
        self.settings = settings
        self.port = node_id
        self.state: RaftState | None = None
        self.life = 0
        self.paused_until_ms = 0
        self.next_value = 0
        drift = quorum.network.profile.clock_drift
        self._clock_rate = 1 + quorum.world.random.uniform(-drift, drift)
        self._timer = 0
        self._is_flushing = False

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
        self.disk.sync()
        view = self.disk.view()._replace(flushed_offset=self.disk.log.end_offset)
        step = transitions.boot(self.local, self.disk.election, view, self._moment(), self.settings)
        self.world.note(lambda: f"n{self.node_id} starts as {step.state.role}")
        self.quorum.watcher.started(self)
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
        if isinstance(event, Received):
            self.quorum.received(event)
        step = transitions.step(self.state, event, self._moment())
        self.world.note(lambda: f"n{self.node_id} {event} -> {step.state.role}")
        before = self.state
        self._carry_out(step)
        self.quorum.watcher.heard(self, before, event)
        self.quorum.stepped(self, before, step)

    def _moment(self) -> Moment:
        return Moment(self._clock_ms, self.world.random.random())

    @property
    def _clock_ms(self) -> int:
        """The time of its own clock."""
        return int(self.world.now_ms * self._clock_rate)

    def append(self, count: int) -> None:
        """As leader, append a batch of a client."""
        if self.state is None or not isinstance(self.state.role, Leader) or self.state.stopping:
            return
        base_offset = self.disk.log.end_offset
        values = tuple(self.quorum.next_value() for _ in range(count))
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
            membership = self.state.log.membership_below(end_offset)
            self.disk.snapshots[snapshot_id] = self.quorum.make_snapshot(self, snapshot_id, membership)
        if self.world.happens(0.7):
            oldest = self.world.random.choice(sorted(self.disk.snapshots))
            if oldest.end_offset > self.disk.log.start_offset:
                self.disk.trim(oldest.end_offset)
        self.hand_in(SnapshotsChanged(self.disk.log.start_offset, self.disk.snapshot_files()))

    # -- steps -----------------------------------------------------------------------------------------

    def _carry_out(self, step: RaftStep) -> None:
        watcher = self.quorum.watcher
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
        self.quorum.watcher.appends(self, batch)
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

        self.world.at(self.world.random.randint(0, self.quorum.network.profile.flush_ms), flushed)

    def _receive(self, chunk: Chunk) -> None:
        if chunk.position == 0:
            self.disk.received = b""
        assert len(self.disk.received) == chunk.position
        self.disk.received += chunk.data
        if not chunk.is_last:
            return
        if self.world.happens(self.quorum.network.profile.damaged_snapshot):
            self.hand_in(SnapshotRefused())
            return
        content = self.quorum.contents[self.disk.received]
        self.quorum.watcher.installs(self, chunk.snapshot_id, content)
        check(not self._is_flushing, f"n{self.node_id} loads a snapshot while a sync runs")
        self._install(content)
        view = self.disk.view()
        self.hand_in(SnapshotInstalled(view._replace(flushed_offset=view.end_offset)))

    def _install(self, content: SnapshotContent) -> None:
        self.disk.install(content)

    # -- the network -----------------------------------------------------------------------------------

    def _send(self, send: Send) -> None:
        quorum, life = self.quorum, self.life
        target = quorum.at_address(send.to.address)
        if target is None:
            return

        def answer(reply: Reply, source: int) -> None:
            def deliver() -> None:
                if life == self.life:
                    self.hand_in(Answered(send.to.node_id, send.request_id, reply.answer))

            quorum.network.carry(source, self.node_id, deliver)

        def deliver() -> None:
            if target.state is None:
                if life == self.life and self.world.happens(0.5):
                    self.world.at(1, lambda: self._unanswered(life, send))
                return
            token = quorum.await_reply(answer)
            self.world.note(lambda: f"n{target.node_id} gets {send.request} as #{token}")
            target.hand_in(Received(token, send.request))

        quorum.network.carry(self.node_id, target.node_id, deliver)

    def _unanswered(self, life: int, send: Send) -> None:
        if life == self.life:
            self.hand_in(Unanswered(send.to.node_id, send.request_id))

    def _reply(self, reply: Reply) -> None:
        answer = reply.answer
        if isinstance(answer, FetchAnswer) and answer.read_from is not None:
            batches = self.disk.log.read(answer.read_from, BATCHES_PER_FETCH)
            reply = Reply(reply.token, answer._replace(batches=batches, read_from=None))
        elif isinstance(answer, FetchSnapshotAnswer) and answer.snapshot_id is not None:
            file = self.disk.snapshots[answer.snapshot_id].file
            part = file[answer.position : answer.position + answer.max_bytes]
            reply = Reply(reply.token, answer._replace(data=part))
        self.quorum.replied(self, reply)

    def request(self, request: Request) -> None:
        """An administrator asks this replica."""
        self.hand_in(Received(self.quorum.await_reply(lambda reply, source: None), request))

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
