"""The shell around the Raft machine: it carries out steps in the one order that is safe.

    persist -> truncate -> append -> receive -> send, answer -> (fsync) -> advance

`_carry_out` is that order. Events are taken one after the other: one that comes while a step is carried out
waits for its turn. Appends return at once; one worker thread at a time syncs whatever has been appended by
then, so writers that come while a sync runs share the next one (group commit), and only after it do their
records count. Requests to other replicas go through `Peers`; requests of theirs come in by `request`. Nothing
is appended when nothing happens: Kafka's NoOp records tell followers that the leader lives, and a quorum of
one has none.

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
from pykafka_broker.raft.core.describe import QuorumStatus, describe, describe_leaderless, with_times_later
from pykafka_broker.raft.core.log_view import Batch, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, ChangeAnswer, Current, Request
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
    Reply,
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
from pykafka_broker.raft.snapshots import Snapshot
from pykafka_broker.raft.storage import Loaded, RaftStorage, StoredSnapshot
from pykafka_broker.system.named_tuple import NamedTuple

#: How often a replica that hands over looks whether another one leads.
HAND_OVER_CHECK_MS = 10


class OtherVotersError(Exception):
    """The log names other voters, and this replica has no way to them."""


class Peers(Protocol):
    """The way to the other replicas."""

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        """Send a request. `answered` is called later, once, on the event loop: with None if nothing comes."""
        ...

    async def close(self) -> None:
        """Give up all requests; `answered` is called no more."""
        ...


class ReplicaListener(Protocol):
    """The part above the replica, to which it hands over what the quorum decides."""

    def on_commit(self, offset: int) -> None:
        """Everything below `offset` is committed."""
        ...

    def on_snapshot(self, snapshot: StoredSnapshot) -> None:
        """The log begins anew at the end of a snapshot, which stands for all committed records before."""
        ...

    def on_role(self) -> None:
        """The replica has another role, or the same in another epoch."""
        ...

    def on_failure(self, error: Exception) -> None:
        """The disk has failed, or the replica is in a state that must not be: it has stopped. Called once."""
        ...


class DriverPorts(NamedTuple):
    """The parts of a node that the driver uses.

    `run_blocking(job)` runs a job in a worker thread. `chance()` returns a number in [0, 1), another each
    time. Without `peers` the replica can serve a quorum of itself alone. `decide` is the machine; the
    simulation of quorums passes one that tells what it was asked and what it decided.
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
        #: Events that wait for the step that is being carried out.
        self._events: deque[Event] = deque()
        self._is_stepping = False
        #: The events that wait are taken as soon as the event loop comes to it.
        self._will_take = False
        self._timer: Timer | None = None
        self._timer_ms: int | None = None
        #: The moment of the last step.
        self._moment_ms = 0
        #: The requests of others that have no answer yet, by token.
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._last_token = 0
        self._flushed = 0
        self._flushing: asyncio.Task[None] | None = None
        #: Runs while a received snapshot takes the place of the log; no event is taken meanwhile.
        self._installing: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self._is_closed = False

    # -- what it is now --------------------------------------------------------------------------------

    @property
    def state(self) -> RaftState:
        """The replica as it is now."""
        assert self._state is not None, "not booted"
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
        """That of the log; 0 before it has been read."""
        return 0 if self._state is None else self._state.log.kraft_version

    @property
    def current(self) -> Current:
        """The epoch, and its leader as far as this replica knows: nothing before it has booted."""
        return Current(0) if self._state is None else transitions.current(self._state)

    @property
    def leader_address(self) -> Address | None:
        """Where the leader is reached; None while that is not known, and on the leader itself."""
        role = None if self._state is None else self._state.role
        return role.endpoints.get(self._settings.listener) if isinstance(role, Follower) else None

    @property
    def is_majority_gone(self) -> bool:
        """Whether nothing listens at the addresses of so many voters that the others elect no leader."""
        return self._state is not None and transitions.is_majority_gone(self._state)

    @property
    def high_watermark(self) -> int | None:
        """Everything below is committed; None while this replica cannot know."""
        return self.state.high_watermark

    def describe(self) -> QuorumStatus | None:
        """The quorum with times of the wall clock; None on a replica that does not lead it."""
        if self._state is None:
            return None
        clock = self._ports.clock
        monotonic_ms = clock.monotonic_ms()
        status = describe(self.state, monotonic_ms)
        return None if status is None else with_times_later(status, clock.now_ms() - monotonic_ms)

    def describe_leaderless(self, silence_ms: int) -> QuorumStatus | None:
        """The quorum as this replica knows it from before a silence of this length, with times of the wall
        clock; None where it leads, or is answered by its leader.
        """
        if self._state is None:
            return None
        now_ms = self._ports.clock.now_ms()
        return describe_leaderless(self.state, now_ms, now_ms - silence_ms)

    # -- life ------------------------------------------------------------------------------------------

    def boot(self, loaded: Loaded) -> None:
        """Take up the role that the files give; a quorum of one leads when this returns.

        The sync of `quorum-state` happens here, on the event loop: nothing can be served before it anyway.

        Raises:
            OtherVotersError: there are other voters and no way to them, or no voter and no other node.
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
            self._flush_soon()  # what the process before this one wrote may be in memory only
        self._take_events()

    async def hand_over(self, timeout_ms: int) -> None:
        """Stand for no election any more; return when another voter leads, or after the time-out.

        A quorum of one has no other voter: it leads, and commits what it has appended, to the end.
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

        After this no requests are sent, and those of others are refused, also those that have waited: their
        connections would wait for the answers.
        """
        self._cancel_timer()
        if self._ports.peers is not None:
            await self._ports.peers.close()
        if self._installing is not None:
            await self._installing
        while self._flushing is not None:
            await self._flushing
        self._is_closed = True
        self._cancel_timer()
        self._refuse_asked(ErrorCode.BROKER_NOT_AVAILABLE)

    @property
    def _is_only_voter(self) -> bool:
        return self.state.log.voters.is_only_voter(self._local.key)

    # -- requests --------------------------------------------------------------------------------------

    def append(self, values: Sequence[bytes]) -> int:
        """Append one batch of framed metadata records; returns the log end offset after it.

        The machine is told later, when the caller has noted what it appended: it may find that this replica
        leads no more, after a pause of the process. A leader whose log cannot be written, as on a full disk,
        lets another voter lead; the only voter goes on, and takes the next batch when there is room.

        Raises:
            KafkaError: NOT_CONTROLLER, this replica does not lead, or will lead no more; or the log of the
                only voter cannot be written.
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
        # Before the events that wait: they may be about another role, and these records are of this one.
        self._events.appendleft(Appended(end_offset))
        self._flush_soon()
        self._take_events_soon()
        return end_offset

    def request(self, request: Request) -> asyncio.Future[Answer]:
        """Take a request of another replica, or of an administrator; the future gets the answer.

        The future fails with KafkaError if the replica has stopped. A caller that waits no more cancels it.
        """
        return self._ask(lambda token: Received(token, request))

    def upgrade_kraft_version(self, *, validate_only: bool) -> asyncio.Future[ChangeAnswer]:
        """Move the voters of the configuration into the log (kraft.version 1), or say whether that can be.

        The future gets the answer as that of `request` does.
        """
        return self._ask(lambda token: UpgradeKRaftVersion(token, validate_only))

    def _ask(self, event_with: Callable[[int], Event]) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._failed is not None or self._is_closed:
            code = ErrorCode.BROKER_NOT_AVAILABLE if self._failed is None else ErrorCode.KAFKA_STORAGE_ERROR
            answer.set_exception(KafkaError(code))
            return answer
        token = self._last_token = self._last_token + 1
        self._asked[token] = answer
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
        """Take the events that wait, unless a step is being carried out: it goes on with them."""
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
            self._set_timer()  # also where this fails: without it the time would stand still

    def _take_events_soon(self) -> None:
        """Take the events that wait after what runs now, unless that is a step, which goes on with them."""
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
        """Carry out a step: no action may come before one that stands above it."""
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
            self._reply(reply)
        if before is None or type(before.role) is not type(role) or before.role.epoch != role.epoch:
            self._listener.on_role()
        if step.advance is not None:
            self.storage.log.state.advance_high_watermark(step.advance)
            self._listener.on_commit(step.advance)

    def _fail(self, error: Exception) -> None:
        """The content of the disk, or the state, is unknown now, so nothing may be acknowledged any more."""
        if self._failed is not None:
            return
        self._failed = error
        self._events.clear()
        self._cancel_timer()
        self._refuse_asked(ErrorCode.KAFKA_STORAGE_ERROR)
        self._listener.on_failure(error)

    def _refuse_asked(self, code: ErrorCode) -> None:
        asked, self._asked = self._asked, {}
        for answer in asked.values():
            if not answer.done():
                answer.set_exception(KafkaError(code))

    # -- time ------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Wake at the next deadline after the moment of the last step: time has gone on since, and one that
        has passed meanwhile is due at once.
        """
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
        answered = partial(self._answered, send.to.node_id, send.request_id)
        if self._ports.peers is None:
            # This node is the only voter: another that claims to lead is not reached, this one leads again.
            asyncio.get_running_loop().call_soon(answered, None)
        else:
            self._ports.peers.send(send, answered)

    def _answered(self, node_id: int, request_id: int, answer: Answer | None) -> None:
        if self._failed is None:
            event: Event = Unanswered(node_id, request_id)
            self._take(event if answer is None else Answered(node_id, request_id, answer))

    def _reply(self, reply: Reply) -> None:
        answer = self._asked.pop(reply.token, None)
        if answer is not None and not answer.done():
            answer.set_result(reply.answer)

    # -- the log ---------------------------------------------------------------------------------------

    def _truncate(self, end_offset: int) -> None:
        # No sync is running: a truncation answers a Fetch, which is sent when everything is on disk.
        self._flushed = min(self._flushed, end_offset)
        self.storage.truncate(end_offset)

    def _replicate(self, batches: tuple[Batch, ...]) -> None:
        self.storage.append_replicated(batches, now_ms=self._now_ms())
        # An observer that can never vote promises nothing: its log is synced as any other is.
        if self._settings.may_vote:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """Sync until nothing is left to sync."""
        try:
            while self._flushed < (end_offset := self.storage.end_offset) and self._failed is None:
                await self._ports.run_blocking(self.storage.flush)
                self._flushed = end_offset
                self._take(Flushed(end_offset))
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
        """Put the received snapshot in the place of the log."""
        try:
            snapshot = await self._ports.run_blocking(self.storage.received.finish)
            self._begin_at(snapshot_id, snapshot)
        except MalformedFile as error:
            # The log is as it was: the next Fetch is told again to start with a snapshot.
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
