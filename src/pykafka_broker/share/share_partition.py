"""One share partition, led here: the shell around its core (`share/core/`).

It reads the state when the first member comes, looks for the group's start offset if there is no state,
sends each write of state to the share coordinator, sets the timer of locks, and wakes waiting fetches.
Fetches read the log themselves.

A share partition that could not be loaded, or that the share coordinator has fenced, is dropped: the next
fetch makes a new one from the coordinator's state. The pending writes of a dropped one go on, and their
members are answered; the new one reads the state after these writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Optional, Protocol, TypeVar, Union

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.read_plan import FoundOffset
from pykafka_broker.machine.shard import Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.steady_timers import SteadyTimers
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import SharePartitionKey
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
    ReadPersistedState,
    Result,
    StartOffsetFound,
    StateRead,
    WakeFetches,
)
from pykafka_broker.share.core.fetching import earliest_begin
from pykafka_broker.share.core.records import StateWrite
from pykafka_broker.share.core.state import Phase, SharePartition
from pykafka_broker.share.core.transitions import transition
from pykafka_broker.share.settings import EARLIEST, LATEST, SharePartitionSettings
from pykafka_broker.share.writes import ShareWrites
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.server.share.SharePartition")

Read = TypeVar("Read")

#: An answer that is known at once, or comes when a write is done.
Answer = Union[Prompt[Result], "asyncio.Future[Result]"]

#: The share coordinator takes no more writes from this leader (Kafka's fencedSharePartitionHandler).
FENCED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class ShareStates(Protocol):
    """The way to the share coordinators (Kafka's Persister)."""

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> StateRead:
        """The coordinator's state of a share partition, or the error; start offset -1: no state yet."""
        ...

    async def write(self, key: SharePartitionKey, leader_epoch: int, write: StateWrite) -> Result:
        """Have the coordinator store a change; returns its error, or NONE."""
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
    timers: SteadyTimers


class LedSharePartition:
    """A share partition on the leader of its partition. Event loop only.

    `settings()` returns the group's current settings. `predecessor` runs until the writes of the share
    partition before this one are answered. `dropped` is called when this one has failed or was fenced.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        partition: LeadingReplica,
        node: ShareNode,
        *,
        settings: Callable[[], SharePartitionSettings],
        predecessor: asyncio.Task[None] | None,
        dropped: Callable[[LedSharePartition], None],
    ) -> None:
        self.key = key
        self.partition = partition
        #: Called when waiting fetches may find records here, or room for them, like `on_advance` of a log.
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
            ShardCore(self._transition, events.TimerFired),
            ShardPorts(append=self._append, scheduler=node.timers, start=self._start),
        )

    def __repr__(self) -> str:
        return f"SharePartition({self.name})"

    @property
    def name(self) -> str:
        """As Kafka prints it: the group, and the partition of the topic."""
        return f"{self.key.group_id}-{self.partition.log.name}"

    # ---- what members ask for ----

    @property
    def settings(self) -> SharePartitionSettings:
        """The settings of its group."""
        return self._settings()

    @property
    def is_fenced(self) -> bool:
        """It was fenced or has failed: waiting fetches have to find the new one."""
        return self._shard.state.phase in (Phase.FENCED, Phase.FAILED)

    @property
    def state(self) -> SharePartition:
        """The state of its core."""
        return self._shard.state

    def initialize(self, told: Callable[[Result], object]) -> None:
        """Load the state if it is not loaded. `told` is called, at once or later, with NONE or the error:
        LEADER_NOT_AVAILABLE while another caller waits for the load.
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
        """The lowest offset from which a fetch could read if it began now; None if none may begin."""
        return earliest_begin(self._shard.state, self._settings().partitions)

    def begin_fetch(self, fetch_id: int) -> Optional[int]:
        """Take the fetch lock: the offset to read from, or None if this fetch may not begin now."""
        if self.is_fenced:
            return None
        answer = self._shard.ask(lambda token: events.BeginFetch(token, fetch_id))
        offset: Optional[int] = answer.result()
        return offset

    def end_fetch(self, fetch_id: int, *, has_read: bool) -> None:
        """Give the fetch lock back. If the fetch has read, wake the fetches that could not begin."""
        self._shard.tell(events.EndFetch(fetch_id))
        if has_read:
            self.wake()

    def offsets_wanted(self, max_records: int) -> int:
        """A fetch of `max_records` acquires no record batch that begins at or after this offset."""
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
        """Acquire records for a member from the record batches that were read."""
        now_ms = self._node.timers.now_ms()
        answer = self._shard.ask(
            lambda token: events.Acquire(
                token, now_ms, member_id, fetch_offset, batches, max_records, batch_size, mode, aborted
            )
        )
        acquired: Acquired = answer.result()
        return acquired

    def acknowledge(self, member_id: str, batches: tuple[AcknowledgementBatch, ...]) -> Answer:
        """Acknowledge a member's records; answered when that is written."""
        now_ms = self._node.timers.now_ms()
        return self._shard.ask(lambda token: events.Acknowledge(token, now_ms, member_id, batches))

    def release(self, member_id: str) -> None:
        """End a member's session: give back its records, without waiting until that is written."""
        now_ms = self._node.timers.now_ms()
        answer = self._shard.ask(lambda token: events.ReleaseMember(token, now_ms, member_id))
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(lambda done: done.exception())

    def log_start_moved(self) -> None:
        """A fetch has found that the log begins after its fetch offset."""
        self._shard.tell(events.LogStartMoved(self.partition.log.state.log_start_offset))

    # ---- its end ----

    def fence(self) -> None:
        """Acquire nothing any more. Callers that wait for the load are answered; writes go on."""
        self._shard.tell(events.Fence())
        self.wake()

    @property
    def writing(self) -> asyncio.Task[None] | None:
        """The task that sends the pending writes; None if all writes are answered."""
        return self._writes.sending

    def close(self) -> list[asyncio.Task[None]]:
        """The node stops: answer all waiting calls. Returns the cancelled tasks."""
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
        self._tell(events.WriteDone(self._node.timers.now_ms(), write.write_id, result.error, result.message))
        if result.error in FENCED:
            self._dropped(self)

    def _start(self, work: object) -> None:
        match work:
            case WakeFetches():
                self.wake()
            case ReadPersistedState():
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
            KafkaError: NOT_LEADER_OR_FOLLOWER; OFFSET_NOT_AVAILABLE if the end is not known yet, or if no
                committed record is that young.
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
        timestamp = self._node.timers.wall_ms() - reset.duration_ms
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
        """Wake the fetches that wait here, in the next turn of the event loop."""
        if self.on_advance and not self._is_wake_due:
            self._is_wake_due = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_wake_due = False
        for callback in tuple(self.on_advance):
            callback(self)


def _result_of(done: asyncio.Future[Result]) -> Result:
    """The answer, or the error if the node stops."""
    error = done.exception()
    return Result(error.code, error.message) if isinstance(error, KafkaError) else done.result()
