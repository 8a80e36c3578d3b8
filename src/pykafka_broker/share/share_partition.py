"""One share partition, led here: the shell around its core (`share/`).

It reads the state of the share partition when the first member comes, finds where the group begins if there
is none, sends each write of state to the share coordinator, sets the timer of locks, and wakes the fetches
that wait. Reading the log is for those who fetch.

A share partition that could not be loaded, or that the share coordinator has fenced, is dropped: the next
fetch begins anew with what the coordinator has. The writes of a dropped one go on, and their members are
answered; its successor reads the state after them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Optional, Protocol, TypeVar, Union

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.read_plan import FoundOffset
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.share.core import events
from pykafka_broker.share.core.events import (
    OK,
    AbortedTransaction,
    AcknowledgementBatch,
    Acquired,
    AcquireMode,
    Event,
    FetchedBatch,
    FindStartOffset,
    ReadState,
    Result,
    StartOffsetFound,
    StateRead,
    WakeFetches,
)
from pykafka_broker.share.core.fetching import earliest_begin
from pykafka_broker.share.core.records import StateWrite
from pykafka_broker.share.core.state import Phase, SharePartition
from pykafka_broker.share.core.transitions import transition
from pykafka_broker.share.settings import EARLIEST, LATEST, ShareGroupSettings
from pykafka_broker.share.writes import ShareWrites
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.server.share.SharePartition")

Read = TypeVar("Read")

#: An answer that is there, or comes when a write is done.
Answer = Union[Prompt[Result], "asyncio.Future[Result]"]

#: The share coordinator does not take this leader's writes any more (Kafka's fencedSharePartitionHandler).
FENCED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class SharePartitionKey(NamedTuple):
    """A partition of a topic, as one share group has it."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareStates(Protocol):
    """The way to the share coordinators (Kafka's Persister)."""

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> StateRead:
        """What the coordinator has of a share partition, or the error; -1 as the start offset says that
        there is none yet.
        """
        ...

    async def write(self, key: SharePartitionKey, leader_epoch: int, write: StateWrite) -> Result:
        """Have the coordinator store what has changed; its error, or NONE."""
        ...


class LogReads(Protocol):
    """Reads of logs that may have to wait for a disk."""

    def run(self, log: PartitionLog, read: Callable[[], Read]) -> Awaitable[Read]:
        """Read from a log in a thread for its disk."""
        ...


class ShareNode(NamedTuple):
    """The parts of the node that every share partition uses."""

    states: ShareStates
    reads: LogReads
    scheduler: Scheduler


class LedSharePartition:
    """A share partition on the leader of its partition. Event loop only.

    `settings` gives those of the group as they now are. `predecessor` has the writes of the one before, if
    some are still on their way. `dropped` is called when this one is of no use any more.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        partition: LeadingReplica,
        node: ShareNode,
        *,
        settings: Callable[[], ShareGroupSettings],
        predecessor: asyncio.Task[None] | None,
        dropped: Callable[[LedSharePartition], None],
    ) -> None:
        self.key = key
        self.partition = partition
        #: Called when fetches that wait may find records here, or room for them; as that of a log.
        self.on_advance: list[Callable[..., Any]] = []
        self._leader_epoch = partition.leader_epoch
        self._node = node
        self._settings = settings
        self._predecessor = predecessor
        self._dropped = dropped
        self._is_wake_due = False
        #: Runs while the state is read, or the start offset looked for.
        self._opening: asyncio.Task[None] | None = None
        self._writes = ShareWrites(self._send, self._write_done)
        self._shard: Shard[SharePartition, Event] = Shard(
            SharePartition(),
            ShardCore(self._transition, _timer_event),
            ShardPorts(append=self._append, scheduler=node.scheduler, start=self._start),
        )

    def __repr__(self) -> str:
        return f"SharePartition({self.name})"

    @property
    def name(self) -> str:
        """As Kafka prints it: the group, and the partition of the topic."""
        return f"{self.key.group_id}-{self.partition.log.name}"

    # ---- what members ask for ----

    @property
    def settings(self) -> ShareGroupSettings:
        """Those of its group."""
        return self._settings()

    @property
    def is_fenced(self) -> bool:
        """It was dropped: whoever waits for it has to look for its successor."""
        return self._shard.state.phase in (Phase.FENCED, Phase.FAILED)

    @property
    def state(self) -> SharePartition:
        """The state of its core."""
        return self._shard.state

    def initialize(self, told: Callable[[Result], object]) -> None:
        """See that the state is loaded. `told` is called with NONE, with LEADER_NOT_AVAILABLE while others
        wait for that, or with why it could not be: at once, or when that is known.
        """
        if self._shard.state.phase is Phase.ACTIVE:
            told(OK)
            return
        answer = self._shard.ask(events.Initialize)
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(lambda done: told(_result_of(done)))
        else:
            told(answer.result())

    def earliest_begin(self) -> Optional[int]:
        """A fetch that began now would read from here on, or from further behind; None if it may not."""
        return earliest_begin(self._shard.state, self._settings().partitions)

    def begin_fetch(self, fetch_id: int) -> Optional[int]:
        """Where this fetch is to read from, and nobody else until it ends; None if it may not now."""
        if self.is_fenced:
            return None
        answer = self._shard.ask(lambda token: events.BeginFetch(token, fetch_id))
        offset: Optional[int] = answer.result()
        return offset

    def end_fetch(self, fetch_id: int, *, has_read: bool) -> None:
        """The fetch reads here no longer. If it has read, others look that could not."""
        self._shard.tell(events.EndFetch(fetch_id))
        if has_read:
            self.wake()

    def offsets_wanted(self, max_records: int) -> int:
        """Records from this offset on are not acquired by a fetch of so many records, whatever it reads; but
        the rest of a record batch may be.
        """
        state, most = self._shard.state, self._settings().partitions.partition_max_record_locks
        return state.end_offset + 1 + max(0, min(max_records, most))

    def acquire(
        self,
        member_id: str,
        fetch_offset: int,
        batches: tuple[FetchedBatch, ...],
        *,
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
        aborted: tuple[AbortedTransaction, ...],
    ) -> Acquired:
        """What a member gets of the record batches that were read."""
        now_ms = self._node.scheduler.now_ms()
        answer = self._shard.ask(
            lambda token: events.Acquire(
                token, now_ms, member_id, fetch_offset, batches, max_records, batch_size, mode, aborted
            )
        )
        acquired: Acquired = answer.result()
        return acquired

    def acknowledge(self, member_id: str, batches: tuple[AcknowledgementBatch, ...]) -> Answer:
        """Take what a member says of its records; answered when that is written."""
        now_ms = self._node.scheduler.now_ms()
        return self._shard.ask(lambda token: events.Acknowledge(token, now_ms, member_id, batches))

    def release(self, member_id: str) -> None:
        """A member's session is over: give back what it has acquired, and do not wait until it is written."""
        now_ms = self._node.scheduler.now_ms()
        answer = self._shard.ask(lambda token: events.ReleaseMember(token, now_ms, member_id))
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(lambda done: done.exception())

    def log_start_moved(self) -> None:
        """A fetch has found that the log begins behind the offset at which it wanted to read."""
        self._shard.tell(events.LogStartMoved(self.partition.log.state.log_start_offset))

    # ---- its end ----

    def fence(self) -> None:
        """Acquire nothing any more. Who waits for the state to be loaded is told; writes go on."""
        self._shard.tell(events.Fence())
        self.wake()

    @property
    def writing(self) -> asyncio.Task[None] | None:
        """Ends when all writes have their answers; None if they have."""
        return self._writes.sending

    def close(self) -> list[asyncio.Task[None]]:
        """The node stops: answer all who wait. The tasks that end soon."""
        self._tell(events.Fence())
        self._shard.close(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        tasks = [task for task in (self._opening, self._writes.sending) if task is not None]
        for task in tasks:
            task.cancel()
        self.wake()
        return tasks

    # ---- what the core wants ----

    def _transition(self, state: SharePartition, event: Event) -> Step[SharePartition]:
        return transition(state, event, self._settings().partitions)

    def _append(self, records: tuple[object, ...]) -> int:
        for write in records:
            assert isinstance(write, StateWrite), write
            self._writes.add(write)
        return 0  # the core itself waits for the answers to its writes

    async def _send(self, write: StateWrite) -> Result:
        try:
            return await self._node.states.write(self.key, self._leader_epoch, write)
        except KafkaError as error:
            return Result(error.code, error.message)
        except Exception:
            logger.exception("Failed to write the share group state for share partition: %s", self.name)
            text = f"Failed to write the share group state for share partition {self.name}"
            return Result(ErrorCode.UNKNOWN_SERVER_ERROR, text)

    def _write_done(self, write: StateWrite, result: Result) -> None:
        if result.error is not ErrorCode.NONE:
            logger.debug("Failed to write the share group state of %s: %s", self, result)
        self._tell(
            events.WriteDone(self._node.scheduler.now_ms(), write.write_id, result.error, result.message)
        )
        if result.error in FENCED:
            self._dropped(self)

    def _start(self, work: object) -> None:
        match work:
            case WakeFetches():
                self.wake()
            case ReadState():
                self._opening = asyncio.get_running_loop().create_task(self._read_state())
            case FindStartOffset():
                self._opening = asyncio.get_running_loop().create_task(self._find_start_offset())
            case _:
                raise AssertionError(work)

    async def _read_state(self) -> None:
        if self._predecessor is not None:
            await asyncio.wait((self._predecessor,))
            self._predecessor = None
        try:
            read = await self._node.states.read(self.key, self._leader_epoch)
        except KafkaError as error:
            read = StateRead(error.code, error.message)
        except Exception:
            logger.exception("Failed to initialize the share partition: %s", self.name)
            read = StateRead(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._opened(read)

    async def _find_start_offset(self) -> None:
        try:
            found = StartOffsetFound(ErrorCode.NONE, await self._start_offset())
        except KafkaError as error:
            found = StartOffsetFound(error.code)
        except Exception:
            logger.exception("Failed to find the start offset of the share partition: %s", self.name)
            found = StartOffsetFound(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._opened(found)

    async def _start_offset(self) -> int:
        """Where `share.auto.offset.reset` says that the group begins.

        Raises:
            KafkaError: another broker leads the partition, or OFFSET_NOT_AVAILABLE: its end cannot be told
                yet, or it has no record of that time.
        """
        partition, reset = self.partition, self._settings().offset_reset
        if partition.has_resigned:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = partition.log
        if reset.strategy == EARLIEST:
            return log.state.log_start_offset
        if not partition.is_end_known:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        end_offset = log.state.high_watermark
        if reset.strategy == LATEST:
            return end_offset
        timestamp = self._node.scheduler.now_ms() - reset.duration_ms
        found: FoundOffset | None = await self._node.reads.run(log, log.reader.search_timestamp(timestamp))
        if found is None or found.offset >= end_offset:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return found.offset

    def _opened(self, event: Event) -> None:
        self._opening = None
        self._tell(event)
        phase = self._shard.state.phase
        if phase is Phase.FAILED:
            self._dropped(self)
        if phase is not Phase.INITIALIZING:
            self.wake()

    def _tell(self, event: Event) -> None:
        """Tell the core, unless the node stops."""
        try:
            self._shard.tell(event)
        except KafkaError as error:
            logger.debug("%s is closed: %s", self, error)

    def wake(self) -> None:
        """Let the fetches look that wait here, in the next turn of the event loop."""
        if self.on_advance and not self._is_wake_due:
            self._is_wake_due = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_wake_due = False
        for callback in tuple(self.on_advance):
            callback(self)


def _result_of(done: asyncio.Future[Result]) -> Result:
    """The answer, which is an error where the node stops."""
    error = done.exception()
    return Result(error.code, error.message) if isinstance(error, KafkaError) else done.result()


def _timer_event(key: Hashable, now_ms: int) -> Event:
    return events.TimerFired(key, now_ms)
