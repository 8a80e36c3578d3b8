"""The shell around the Raft machine: it carries out steps in the order that is safe.

    persist -> truncate -> append -> receive -> send, answer -> (fsync) -> advance

`_carry_out` implements that order. Events are taken one after the other: an event that comes during a step
waits. Appends return at once. One worker thread at a time syncs the log; records appended during a sync share
the next one (group commit), and count only after it. Requests to other replicas go through `Peers`; their
requests come in through `request`. Unlike Kafka's leader, this one appends no periodic NoOp records.

Single-threaded: every method is called on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.machine.clock import Clock, Timer
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import Batch, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, ChangeAnswer, Current, Destination, Refused, Request
from pykafka_broker.raft.core.quorum import Address, Voter
from pykafka_broker.raft.core.roles import Follower, Leader
from pykafka_broker.raft.core.settings import DEFAULTS, Settings
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
    Resign,
    Send,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotsChanged,
    Stop,
    TimePassed,
    Unanswered,
    UpgradeKRaftVersion,
)
from pykafka_broker.raft.quorum_view import QuorumView
from pykafka_broker.raft.snapshots import Snapshot
from pykafka_broker.raft.storage import Loaded, RaftStorage, StoredSnapshot
from pykafka_broker.raft.waiting_requests import WaitingRequests
from pykafka_broker.system.named_tuple import NamedTuple

#: How often a replica that hands over checks whether another one leads.
HAND_OVER_CHECK_MS = 10
#: The pause before the log is synced again if its disk had no room for that.
FLUSH_RETRY_MS = 500


class OtherVotersError(Exception):
    """The log names other voters, and this replica has no connections to them."""


class Peers(Protocol):
    """The connections to the other replicas."""

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        """Send a request. `answered` is called once, later, on the event loop; with None for no answer."""
        ...

    async def close(self) -> None:
        """Give up all requests; `answered` is no longer called."""
        ...


class ReplicaListener(Protocol):
    """The part above the replica, which learns what the quorum decides."""

    def on_commit(self, offset: int) -> None:
        """Everything below `offset` is committed."""
        ...

    def on_snapshot(self, snapshot: StoredSnapshot) -> None:
        """The log restarts at the end of a snapshot, which replaces all committed records before."""
        ...

    def on_role(self) -> None:
        """The replica has another role, or the same in another epoch."""
        ...

    def on_led(self) -> None:
        """`QuorumView.was_led` has changed."""
        ...

    def on_failure(self, error: Exception) -> None:
        """The disk has failed, or the state is impossible: the replica has stopped. Called once."""
        ...


class DriverPorts(NamedTuple):
    """The parts of a node that the driver uses.

    `run_blocking(job)` runs a job in a worker thread. `chance()` returns a random number in [0, 1). Without
    `peers` the replica can only be the only voter. `decide` is the machine; the simulation of quorums passes
    one that records its events and decisions.
    """

    clock: Clock
    run_blocking: RunBlocking
    chance: Callable[[], float]
    peers: Peers | None = None
    decide: Callable[[RaftState, Event, Moment], RaftStep] = transitions.step


class RaftDriver:
    """One replica of the metadata log."""

    def __init__(
        self,
        storage: RaftStorage,
        local: Voter,
        listener: ReplicaListener,
        ports: DriverPorts,
        settings: Settings = DEFAULTS,
    ) -> None:
        self.storage = storage
        self._local = local
        self._listener = listener
        self._ports = ports
        self._settings = settings
        self._state: RaftState | None = None
        #: The quorum as this replica sees it.
        self.view = QuorumView(ports.clock, lambda: self._state)
        #: Events that wait for the step that is being carried out.
        self._events: deque[Event] = deque()
        self._is_stepping = False
        #: Whether the event loop is scheduled to take the waiting events.
        self._will_take = False
        self._timer: Timer | None = None
        self._timer_ms: int | None = None
        #: The moment of the last step.
        self._moment_ms = 0
        self._requests = WaitingRequests()
        self._flushed = 0
        self._flushing: asyncio.Task[None] | None = None
        #: Runs while a received snapshot replaces the log; no event is taken meanwhile.
        self._installing: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self._is_closing = self._is_closed = False

    # -- what it is now --------------------------------------------------------------------------------

    @property
    def state(self) -> RaftState:
        """The replica as it is now."""
        assert self._state is not None, "not booted"
        return self._state

    @property
    def known_state(self) -> RaftState | None:
        """The replica as it is now; None before the boot."""
        return self._state

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        return self.state.role.epoch

    @property
    def leader_id(self) -> int:
        """The id of the leader of the epoch; -1 while none is known."""
        role = None if self._state is None else self._state.role
        if isinstance(role, Leader):
            return self._local.key.node_id
        return role.leader_id if isinstance(role, Follower) else -1

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the log; 0 before it has been read."""
        return 0 if self._state is None else self._state.log.kraft_version

    @property
    def current(self) -> Current:
        """The epoch and its known leader; epoch 0 without a leader before the boot."""
        return Current(0) if self._state is None else transitions.current(self._state)

    @property
    def leader_address(self) -> Address | None:
        """The leader's address; None if unknown, and on the leader itself."""
        role = None if self._state is None else self._state.role
        return role.endpoints.get(self._settings.listener) if isinstance(role, Follower) else None

    @property
    def high_watermark(self) -> int | None:
        """The offset below which everything is committed; None while unknown."""
        return self.state.high_watermark

    # -- life ------------------------------------------------------------------------------------------

    def boot(self, loaded: Loaded) -> None:
        """Take the role that the files give; an only voter leads when this returns.

        The sync of `quorum-state` happens here, on the event loop: nothing can be served before it anyway.

        Raises:
            OtherVotersError: there are other voters but no `peers`, or no voter and no other node.
            OSError, KafkaError: the disk failed.
        """
        membership = loaded.view.membership
        others = set(self._settings.bootstrap).difference(self._local.endpoints.values())
        if self._ports.peers is None or not (membership.voters.voters or others):
            _check_alone(self._local, membership)
        step = transitions.boot(self._local, loaded.election, loaded.view, self._moment(), self._settings)
        self._is_stepping = True
        try:
            self._carry_out(step)
        finally:
            self._is_stepping = False
        if self._ports.peers is not None:
            self._events.append(TimePassed())  # to ask the others at once
            self._flush_soon()  # writes of the previous process may not be on disk yet
        self._take_events()

    async def hand_over(self, timeout_ms: int) -> None:
        """Start no more elections; return when another voter leads, or after the time-out.

        An only voter leads to the end, and commits the records that it has appended.
        """
        if self._failed is not None or self._state is None or self._is_only_voter:
            return
        self._take(Stop())
        give_up_ms = self._ports.clock.monotonic_ms() + timeout_ms
        while (
            self._failed is None
            and not transitions.may_stop(self.state)
            and self._ports.clock.monotonic_ms() < give_up_ms
        ):
            await self._ports.clock.sleep(HAND_OVER_CHECK_MS)

    async def close(self) -> None:
        """Return when everything appended is on disk, or cannot be.

        After this no requests are sent. Requests of others, waiting ones too, are refused, because their
        connections would wait for the answers.
        """
        self._is_closing = True
        self._cancel_timer()
        if self._ports.peers is not None:
            await self._ports.peers.close()
        if self._installing is not None:
            await self._installing
        while self._flushing is not None:
            await self._flushing
        self._is_closed = True
        self._cancel_timer()
        self._requests.refuse(ErrorCode.BROKER_NOT_AVAILABLE)

    @property
    def _is_only_voter(self) -> bool:
        return self.state.log.voters.is_only_voter(self._local.key)

    # -- requests --------------------------------------------------------------------------------------

    def append(self, values: Sequence[bytes]) -> int:
        """Append one batch of framed metadata records; returns the log end offset after it.

        The machine is told later, after the caller has noted the append, because it may resign then, for
        instance after a pause of the process. A leader whose log cannot be written, as on a full disk, lets
        another voter lead; an only voter stays the leader, and takes the next batch when there is room.

        Raises:
            KafkaError: NOT_CONTROLLER, this replica does not lead, or resigns; KAFKA_STORAGE_ERROR, the log
                of the only voter cannot be written, or the replica has failed.
        """
        if self._failed is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from self._failed
        if not isinstance(self.state.role, Leader):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        try:
            self.storage.append_metadata(values, epoch=self.epoch, now_ms=self._now_ms())
        except KafkaError as error:
            if error.code is not ErrorCode.KAFKA_STORAGE_ERROR or self._is_only_voter:
                raise
            self._events.append(Resign())
            self._take_events_soon()
            raise KafkaError(ErrorCode.NOT_CONTROLLER) from error
        end_offset = self.storage.end_offset
        # Before the waiting events, which may change the role: these records belong to the present one.
        self._events.appendleft(Appended(end_offset))
        self._flush_soon()
        self._take_events_soon()
        return end_offset

    def request(self, request: Request) -> asyncio.Future[Answer]:
        """Take a request of another replica, or of an administrator; the future gets the answer.

        The future fails with KafkaError if the replica has stopped. A caller may cancel it.
        """
        return self._ask(lambda token: Received(token, request))

    def upgrade_kraft_version(self, *, validate_only: bool) -> asyncio.Future[ChangeAnswer]:
        """Move the voters of the configuration into the log (kraft.version 1), or only check that.

        The future gets the answer as that of `request` does.
        """
        return self._ask(lambda token: UpgradeKRaftVersion(token, validate_only))

    def _ask(self, event_with: Callable[[int], Event]) -> asyncio.Future[Any]:
        token, answer = self._requests.add()
        if self._failed is not None:
            self._requests.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
        elif self._is_closed:
            self._requests.refuse(ErrorCode.BROKER_NOT_AVAILABLE)
        else:
            self._take(event_with(token))
        return answer

    def snapshots_changed(self) -> None:
        """A snapshot has been written, or old ones removed with the log before them."""
        if self._state is not None and self._failed is None:
            self._take(
                SnapshotsChanged(self.storage.log.state.log_start_offset, self.storage.snapshot_files())
            )

    # -- steps -----------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        if self._is_closed:
            return
        self._events.append(event)
        self._take_events()

    def _take_events(self) -> None:
        """Take the waiting events, unless a step is being carried out, after which they are taken."""
        if self._is_stepping or self._state is None:
            return
        self._is_stepping = True
        try:
            while self._events and self._installing is None and self._failed is None:
                self._carry_out(self._ports.decide(self.state, self._events.popleft(), self._moment()))
        except (KafkaError, OSError, IllegalState) as error:
            self._fail(error)
        finally:
            self._is_stepping = False
            self._set_timer()  # also after an error, or no deadline would fire again

    def _take_events_soon(self) -> None:
        """Take the waiting events after the present callback, or after the step that is being carried out."""
        if not (self._is_stepping or self._will_take):
            self._will_take = True
            asyncio.get_running_loop().call_soon(self._take_now)

    def _take_now(self) -> None:
        self._will_take = False
        if self._failed is None:
            self._take_events()

    def _moment(self) -> Moment:
        self._moment_ms = self._ports.clock.monotonic_ms()
        return Moment(self._moment_ms, self._ports.chance())

    def _now_ms(self) -> int:
        return self._ports.clock.now_ms()

    def _carry_out(self, step: RaftStep) -> None:
        """Carry out a step; the order of the actions matters."""
        before, self._state = self._state, step.state
        role = step.state.role
        if step.persist is not None:
            self.storage.write_election_state(step.persist, step.state.log.membership)
        if step.truncate is not None:
            self._truncate(step.truncate)
        if step.append:
            self.storage.append_control(step.append, epoch=role.epoch, now_ms=self._now_ms())
            self._flush_soon()
        if step.replicate:
            self._replicate(step.replicate)
        if step.receive is not None:
            self._receive(step.receive)
        for send in step.send:
            self._send(send)
        for reply in step.reply:
            self._requests.reply(reply)
        if before is None or type(before.role) is not type(role) or before.role.epoch != role.epoch:
            self._listener.on_role()
        if self.view.note_step():
            self._listener.on_led()
        if step.advance is not None:
            self.storage.log.state.advance_high_watermark(step.advance)
            self._listener.on_commit(step.advance)

    def _fail(self, error: Exception) -> None:
        """Stop: the disk or the state is in doubt, so nothing may be acknowledged."""
        if self._failed is not None:
            return
        self._failed = error
        self._events.clear()
        self._cancel_timer()
        self._requests.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
        self._listener.on_failure(error)

    # -- time ------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Wake at the next deadline after the last step's moment; one that has passed is due at once."""
        if self._failed is not None or self._installing is not None:
            return
        clock = self._ports.clock
        deadline_ms = transitions.next_deadline_ms(self.state, self._moment_ms)
        if deadline_ms == self._timer_ms:
            return
        self._cancel_timer()
        if deadline_ms is not None:
            self._timer_ms, self._timer = deadline_ms, clock.call_at(deadline_ms, self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_ms = None

    def _on_timer(self) -> None:
        self._timer = self._timer_ms = None
        self._take(TimePassed())

    # -- other replicas --------------------------------------------------------------------------------

    def _send(self, send: Send) -> None:
        answered = partial(self._answered, send.to, send.request_id)
        if self._ports.peers is None or self._is_closing:
            # An only voter does not ask a node that claims to lead: it leads again itself. The others ask no
            # more once they close, or a connection would outlive them.
            asyncio.get_running_loop().call_soon(answered, None)
        else:
            self._ports.peers.send(send, answered)

    def _answered(self, to: Destination, request_id: int, answer: Answer | None) -> None:
        if answer is None or isinstance(answer, Refused):
            self.view.unheard(to)
        else:
            self.view.heard(to)
        if self._failed is None:
            event: Event = Unanswered(to.node_id, request_id)
            self._take(event if answer is None else Answered(to.node_id, request_id, answer))

    # -- the log ---------------------------------------------------------------------------------------

    def _truncate(self, end_offset: int) -> None:
        # No sync is running: a truncation follows a Fetch, which is sent only when everything is on disk.
        self._flushed = min(self._flushed, end_offset)
        self.storage.truncate(end_offset)

    def _replicate(self, batches: tuple[Batch, ...]) -> None:
        self.storage.append_replicated(batches, now_ms=self._now_ms())
        # An observer that can never vote acknowledges nothing: its log is synced like any other.
        if self._settings.may_vote:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """Sync until nothing is left to sync; if the disk has no room for that, try again until it has."""
        try:
            while self._flushed < (end_offset := self.storage.end_offset) and self._failed is None:
                if await self._ports.run_blocking(self.storage.flush):
                    self._flushed = end_offset
                    self._take(Flushed(end_offset))
                elif self._is_closing:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                else:
                    self._take(Resign())  # an only voter stays the leader
                    await self._ports.clock.sleep(FLUSH_RETRY_MS)
        except Exception as error:
            self._fail(error)
        finally:
            self._flushing = None

    # -- snapshots -------------------------------------------------------------------------------------

    def _receive(self, chunk: Chunk) -> None:
        self.storage.received.write(chunk)
        if chunk.is_last:
            self._installing = asyncio.get_running_loop().create_task(self._install(chunk.snapshot_id))

    async def _install(self, snapshot_id: SnapshotId) -> None:
        """Replace the log with the received snapshot."""
        try:
            snapshot = await self._ports.run_blocking(self.storage.received.finish)
            self._begin_at(snapshot_id, snapshot)
        except MalformedFile as error:
            # The log is unchanged: the answer to the next Fetch names a snapshot again.
            self.storage.received.refused(error)
            self._events.appendleft(SnapshotRefused())
        except Exception as error:
            self._fail(error)
        finally:
            self._installing = None
        self._take_events()

    def _begin_at(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self.storage.begin_at(snapshot_id)
        self._flushed = snapshot_id.end_offset
        self._listener.on_snapshot(StoredSnapshot(snapshot_id, snapshot.values))
        self._events.appendleft(SnapshotInstalled(self.storage.view_at(snapshot_id, snapshot.voters)))


def _check_alone(local: Voter, membership: Membership) -> None:
    """Raise OtherVotersError unless `local` is the only voter."""
    voters = membership.voters
    if voters.is_only_voter(local.key):
        return
    node_id, known = local.key.node_id, sorted(voters.voters)
    if known == [node_id]:
        raise OtherVotersError(
            f"it knows node {node_id} by another directory.id than that of meta.properties"
        )
    if not known:
        raise OtherVotersError(
            f"node {node_id} finds no voters in its metadata log: name itself in "
            f"controller.quorum.voters ({node_id}@host:port), as before"
        )
    raise OtherVotersError(
        f"node {node_id} finds the voters {known} in its metadata log: it can serve a quorum of itself alone"
    )
