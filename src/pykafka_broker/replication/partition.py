"""One partition held by this node: its log, and the rules of replication around it.

The core (`core/`) decides when the high watermark moves and who may do what; a `Partition` carries that out
on the log. A partition without followers commits appended records at once or, where `flush.messages` asks for
that, as soon as they are on disk. Appends and consumers' fetches read flags that are worked out when the
leadership changes, so that replication costs them nothing. Fetches of followers and the lag check go through
`core.transitions.transition`, whose requests to the controller go to `IsrChanges`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from pykafka_broker.cluster.image import NO_LEADER, BrokerRegistration, PartitionRegistration
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.limit import Limit
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin, ProducerState
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.step import Start
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core.access import ACKS_ALL, limit_for_replica, not_enough_replicas
from pykafka_broker.replication.core.events import (
    AlterPartition,
    Event,
    FollowerFetched,
    IsrChangeRefused,
    TimePassed,
)
from pykafka_broker.replication.core.high_watermark import commits_at_once, high_watermark
from pykafka_broker.replication.core.in_sync import is_under_min_isr
from pykafka_broker.replication.core.state import NO_BROKER_EPOCH, Leadership, LogOffsets
from pykafka_broker.replication.core.transitions import ReplicationSettings, lead, transition
from pykafka_broker.system.named_tuple import NamedTuple

Result = TypeVar("Result")


class SyncThreads(Protocol):
    """Threads for the syncs that acknowledgements wait for."""

    def run(self, log: PartitionLog, job: Callable[[], Result]) -> Awaitable[Result]:
        """Run `job` in a thread for the disk of `log`."""
        ...


class IsrChanges(Protocol):
    """Asks the controller for changes of ISRs."""

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        change: AlterPartition,
        refused: Callable[[IsrChangeRefused], None],
    ) -> None:
        """Ask for `change`, filling in this node's own broker epoch.

        A change that the controller makes comes with the next image; call `refused`, at once or later, if the
        controller does not make it. A partition asks for no other change meanwhile.
        """
        ...


class PartitionPorts(NamedTuple):
    """The parts of the node that every partition uses."""

    node_id: int
    sync_threads: SyncThreads
    clock: Clock
    isr_changes: IsrChanges
    #: A broker as the newest image has it; None if it is not registered.
    registration_of: Callable[[int], BrokerRegistration | None]
    #: Kafka's default of `replica.lag.time.max.ms`; the key is read when ISR changes are made.
    lag_time_max_ms: int = 30_000


class _Waiting(NamedTuple):
    """A producer that waits for everything below `next_offset` to be acknowledged."""

    next_offset: int
    required_acks: int
    answer: asyncio.Future[ErrorCode]


class Partition:
    """One replica held here, led here while `is_leader`. Event loop only."""

    __slots__ = (
        "_commits_at_once",
        "_defers_names",
        "_flushing",
        "_is_under_min_isr",
        "_leadership",
        "_ports",
        "_waiting",
        "acknowledges_at_once",
        "is_leader",
        "leader",
        "leader_epoch",
        "log",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: str, topic_id: bytes, partition: int, log: PartitionLog, ports: PartitionPorts
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.log = log
        #: The broker that leads the partition in `leader_epoch`; NO_LEADER if none does.
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.is_leader = False
        #: Appended records may be acknowledged at once, whatever acks a producer asks for.
        self.acknowledges_at_once = False
        self._ports = ports
        self._leadership: Leadership | None = None
        # Flags that appends read, worked out by `_lead`.
        self._commits_at_once = False
        self._is_under_min_isr = False
        #: Producers can wait for a file to be made; coordinators append in the middle of a transition.
        self._defers_names = topic not in INTERNAL_TOPICS
        #: Runs while something appended has to be on disk before it may be acknowledged (`flush.messages`).
        self._flushing: asyncio.Task[None] | None = None
        self._waiting: list[_Waiting] = []

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, epoch={self.leader_epoch}, leader={self.is_leader})"

    # --- roles ------------------------------------------------------------------------------------

    def become(self, registration: PartitionRegistration) -> None:
        """Take up the role that the metadata gives."""
        node_id, log = self._ports.node_id, self.log
        if registration.leader != node_id:
            self.resign()
            self.leader = registration.leader
            self.leader_epoch = registration.leader_epoch
            return
        if registration.leader_epoch != self.leader_epoch:
            log.epoch_file.begin(registration.leader_epoch)
        self.leader = node_id
        self.leader_epoch = registration.leader_epoch
        self.is_leader = True
        self._lead(
            lead(
                self._leadership,
                node_id,
                registration,
                ReplicationSettings(log.state.config.min_insync_replicas, self._ports.lag_time_max_ms),
                log.state.log_end_offset,
                self._ports.clock.monotonic_ms(),
            )
        )

    def resign(self) -> None:
        """Lead the partition no more. Producers that wait for followers have to ask the next leader."""
        if self._waiting and self._waits_for_followers():
            self._answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, lambda each: each.required_acks == ACKS_ALL)
        self.leader = NO_LEADER
        self.is_leader = False
        self._leadership = None
        self._commits_at_once = self._is_under_min_isr = self.acknowledges_at_once = False

    def configure(self, config: LogConfig) -> None:
        """Apply the topic's changed settings."""
        self.log.state.reconfigure(config)
        if self._leadership is not None:
            self._lead(self._leadership._replace(min_insync_replicas=config.min_insync_replicas))

    def _lead(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._commits_at_once = commits_at_once(leadership)
        self._is_under_min_isr = is_under_min_isr(leadership)
        self.acknowledges_at_once = self._commits_at_once and self._flushing is None
        self._commit()

    def _take(self, event: Event) -> None:
        """Let the core decide on `event`, and carry the decision out."""
        assert self._leadership is not None
        step = transition(self._leadership, event)
        self._lead(step.state)
        for effect in step.effects:
            assert isinstance(effect, Start) and isinstance(effect.work, AlterPartition)
            self._ports.isr_changes.alter_partition(
                self.topic_id, self.partition, effect.work, self._isr_change_refused
            )

    def _isr_change_refused(self, event: IsrChangeRefused) -> None:
        if self._leadership is not None:
            self._take(event)

    def _log_offsets(self) -> LogOffsets:
        state = self.log.state
        return LogOffsets(state.high_watermark, state.log_end_offset)

    # --- writing ----------------------------------------------------------------------------------

    def append(
        self,
        records: Buffer,
        *,
        required_acks: int,
        produce_version: int,
        now_ms: int,
        guard: int = NO_GUARD,
    ) -> AppendResult:
        """Append a producer's batch; `guard` is that of a transaction's first batch.

        Raises:
            KafkaError: the batch is refused (nothing was written), or the storage failed.
            NamesDue: a file has to be made before.
        """
        if self._is_under_min_isr and required_acks == ACKS_ALL:
            raise self._not_enough_replicas()
        log = self.log
        result = log.writer.append(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            produce_version=produce_version,
            guard=guard,
            defers_names=self._defers_names,
        )
        self._appended(result.flush_due)
        return result

    def append_internal(
        self, batch: Buffer, now_ms: int, *, guard: int = NO_GUARD, transaction_version: int = 0
    ) -> int:
        """Append a coordinator's batch; returns the log end offset after it.

        `guard` and `transaction_version` are for the records of a transaction, and for its marker.

        Raises:
            KafkaError: this node does not lead the partition, or the storage failed.
            NamesDue: a file has to be made before; never where coordinators keep their state.
        """
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self._is_under_min_isr:
            raise self._not_enough_replicas()
        log = self.log
        result = log.writer.append_internal(
            batch,
            self.leader_epoch,
            now_ms,
            AppendOrigin.COORDINATOR,
            guard,
            transaction_version,
            self._defers_names,
        )
        self._appended(result.flush_due)
        return log.state.log_end_offset

    def acknowledged(
        self, next_offset: int, required_acks: int, timeout_ms: int | None = None
    ) -> Awaitable[ErrorCode] | None:
        """None if everything below `next_offset` may be acknowledged now, else an awaitable for that moment.

        With acks=all that is the high watermark where followers count: REQUEST_TIMED_OUT after `timeout_ms`,
        NOT_LEADER_OR_FOLLOWER if another broker leads first. All else waits only for the sync that
        `flush.messages` asks for. None is always the answer while `acknowledges_at_once`.
        """
        if self.acknowledges_at_once or next_offset <= self._acknowledged_offset(required_acks):
            return None
        waiting = _Waiting(next_offset, required_acks, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if timeout_ms is not None and required_acks == ACKS_ALL and self._waits_for_followers():
            clock = self._ports.clock
            timer = clock.call_at(
                clock.monotonic_ms() + timeout_ms,
                lambda: self._answer(ErrorCode.REQUEST_TIMED_OUT, lambda each: each is waiting),
            )
            waiting.answer.add_done_callback(lambda _: timer.cancel())
        return waiting.answer

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> int:
        """The guard under which the coordinator has to be asked before a transactional batch is appended;
        NO_GUARD if the producer's transaction is open here already.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH for an epoch that is over.
        """
        return self.log.writer.start_verification(
            producer_id, producer_epoch, sequence, bumps_epoch=bumps_epoch, now_ms=now_ms
        )

    def delete_records(self, before_offset: int) -> int:
        """DeleteRecords up to an offset (-1: the high watermark); the new low watermark.

        Raises:
            KafkaError: POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE beyond the
                high watermark.
        """
        cleanup_policy = self.log.state.config.cleanup_policy
        if "delete" not in cleanup_policy and cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        return self.log.trimmer.delete_records(before_offset)

    def _not_enough_replicas(self) -> KafkaError:
        assert self._leadership is not None
        return not_enough_replicas(self._leadership, self.log.name)

    # --- reading ----------------------------------------------------------------------------------

    def limit_for_replica(self, replica_id: int) -> Limit:
        """The limit of another broker's reads.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER for a broker that is not assigned to the partition.
        """
        assert self._leadership is not None
        return limit_for_replica(self._leadership, replica_id)

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record that is kept."""
        return self.log.state.log_start_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch <= `epoch`, where it ends); (-1, -1) if unknown."""
        return self.log.reader.end_offset_for_epoch(epoch)

    def active_producers(self) -> list[ProducerState]:
        """The producers with an id whose batches the partition remembers."""
        return self.log.state.active_producers()

    # --- followers --------------------------------------------------------------------------------

    def follower_fetched(self, replica_id: int, broker_epoch: int, fetch_offset: int) -> None:
        """An assigned follower has everything below `fetch_offset`; `broker_epoch` is -1 if it names none.

        It may move the high watermark, and the follower may join the ISR. A fetch that is answered with an
        error or a diverging epoch does not come here.
        """
        broker = self._ports.registration_of(replica_id)
        self._take(
            FollowerFetched(
                self._ports.clock.monotonic_ms(),
                replica_id,
                fetch_offset,
                self._log_offsets(),
                broker_epoch,
                NO_BROKER_EPOCH if broker is None else broker.epoch,
                broker is not None and broker.active,
            )
        )

    def check_lag(self) -> None:
        """Ask for an ISR without the followers that lag; due every half of `replica.lag.time.max.ms`."""
        if self._leadership is not None and self._leadership.followers:
            self._take(TimePassed(self._ports.clock.monotonic_ms(), self._log_offsets()))

    # --- committing -------------------------------------------------------------------------------

    def _appended(self, flush_due: bool) -> None:
        """Commit the appended records: at once, or when the sync that `flush.messages` asks for is done.

        Where others are in sync, it is their fetches that commit.
        """
        if flush_due or self._flushing is not None:
            if self._flushing is None:
                self._flushing = asyncio.get_running_loop().create_task(self._flush())
                self.acknowledges_at_once = False
        elif self._commits_at_once:
            state = self.log.state
            state.advance_high_watermark(state.log_end_offset)
        else:
            self._commit()

    def _commit(self) -> None:
        """Move the high watermark as far as it may, and acknowledge the requests that this allows."""
        leadership = self._leadership
        if leadership is not None:
            offset = self._local_offset()
            if not self._commits_at_once:
                now_ms = self._ports.clock.monotonic_ms()
                offset = high_watermark(leadership, self._log_offsets(), offset, now_ms)
            self.log.state.advance_high_watermark(offset)
        if self._waiting:
            self._acknowledge()

    def _local_offset(self) -> int:
        """Up to where the log of this node counts: on disk only, where `flush.messages` asks for that."""
        state = self.log.state
        return state.log_end_offset if self._flushing is None else state.recovery_point

    def _acknowledged_offset(self, required_acks: int) -> int:
        """Everything below may be acknowledged to a producer with these acks."""
        if required_acks == ACKS_ALL and self._waits_for_followers():
            return self.log.state.high_watermark
        return self._local_offset()

    def _waits_for_followers(self) -> bool:
        return self._leadership is not None and not self._commits_at_once

    async def _flush(self) -> None:
        """Sync until nothing is left to sync: producers that come meanwhile share the next one."""
        error = ErrorCode.NONE
        try:
            while self.log.state.recovery_point < self.log.state.log_end_offset:
                log = self.log
                try:
                    await self._ports.sync_threads.run(log, log.flusher.flush)
                except KafkaError:
                    if log is self.log:
                        raise
                if log is not self.log:  # moved to another directory meanwhile
                    continue
                self._commit()
        except KafkaError as failure:
            error = failure.code
        finally:
            self._flushing = None
            self.acknowledges_at_once = self._commits_at_once
            if error is ErrorCode.NONE:
                self._acknowledge()
            else:
                self._answer(error, lambda _: True)

    def _acknowledge(self) -> None:
        """Answer the producers whose batches may be acknowledged by now."""
        self._answer(
            ErrorCode.NONE,
            lambda waiting: waiting.next_offset <= self._acknowledged_offset(waiting.required_acks),
        )

    def _answer(self, error: ErrorCode, is_due: Callable[[_Waiting], bool]) -> None:
        """Answer those of the waiting producers whose answer is due."""
        all_waiting, self._waiting = self._waiting, []
        for waiting in all_waiting:
            if not is_due(waiting):
                self._waiting.append(waiting)
            elif not waiting.answer.done():
                waiting.answer.set_result(error)
