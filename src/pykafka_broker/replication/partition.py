"""One partition held by this node: its log, and the rules of replication around it.

The core (`core/`) decides when the high watermark moves and who may do what; a `Partition` carries that out
on the log. A partition without followers commits appended records at once or, where `flush.messages` asks for
that, as soon as they are on disk. Appends and consumers' fetches read flags that are worked out when the
leadership changes, so that replication costs them nothing. Fetches of followers and the lag check go through
`core.transitions.transition`, whose requests to the controller go to `IsrChanges`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from pykafka_broker.cluster.image import NO_LEADER, BrokerRegistration, PartitionRegistration
from pykafka_broker.cluster.partitions import has_online_directory
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
from pykafka_broker.replication.core.access import (
    ACKS_ALL,
    is_end_known,
    limit_for_replica,
    not_enough_replicas,
    outcome_of_committed,
)
from pykafka_broker.replication.core.events import (
    AlterPartition,
    BrokersChanged,
    Event,
    FollowerFetched,
    IsrChangeAnswered,
    TimePassed,
)
from pykafka_broker.replication.core.high_watermark import commits_at_once, high_watermark
from pykafka_broker.replication.core.in_sync import is_cut_off, is_under_min_isr
from pykafka_broker.replication.core.low_watermark import low_watermark
from pykafka_broker.replication.core.nearest import nearest_replica
from pykafka_broker.replication.core.state import (
    NO_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    Leadership,
    LogOffsets,
)
from pykafka_broker.replication.core.throttling import RateLimit, is_throttled
from pykafka_broker.replication.core.transitions import ReplicationSettings, is_outdated, lead, transition
from pykafka_broker.replication.waiting import Waiting, answer, wait
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.cluster.Partition")

Result = TypeVar("Result")

#: In DeleteRecords: up to the high watermark.
HIGH_WATERMARK = -1


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
        answered: Callable[[IsrChangeAnswered], None],
    ) -> None:
        """Ask for `change`, filling in this node's own broker epoch, until the controller has answered.

        `answered` is called with the answer, at once or later. A change that the controller makes comes with
        the next image too, before or after that.
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
    #: What may be sent to throttled followers.
    follower_rate: RateLimit
    #: `replica.lag.time.max.ms`
    lag_time_max_ms: int = 30_000


class _Acknowledgement(NamedTuple):
    """What a producer waits for: everything below `next_offset` may be acknowledged to it."""

    next_offset: int
    required_acks: int


class DeletedRecords(NamedTuple):
    """The records below `offset` are deleted here, and on every live replica those below `low_watermark`."""

    offset: int
    low_watermark: int


class Partition:
    """One replica held here, led here while `is_leader`. Event loop only."""

    __slots__ = (
        "_commits_at_once",
        "_defers_names",
        "_deleting",
        "_flushing",
        "_is_throttled_leader",
        "_leadership",
        "_lost",
        "_ports",
        "_refuses_acks_all",
        "_registration",
        "_waiting",
        "acknowledges_at_once",
        "is_cut_off",
        "is_in_sync",
        "is_leader",
        "is_throttled_follower",
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
        #: This replica is in the ISR of the metadata.
        self.is_in_sync = False
        #: Appended records may be acknowledged at once, whatever acks a producer asks for.
        self.acknowledges_at_once = False
        #: The controller is silent, and so is a follower that is in sync as far as is known here.
        self.is_cut_off = False
        self._ports = ports
        self._throttle(log.state.config)
        self._leadership: Leadership | None = None
        #: What the metadata says of the partition that is led here.
        self._registration: PartitionRegistration | None = None
        #: The replicas whose log directories are out of service.
        self._lost: frozenset[int] = frozenset()
        # Flags that appends read, worked out by `_lead`.
        self._commits_at_once = False
        self._refuses_acks_all = False
        #: Producers can wait for a file to be made; coordinators append in the middle of a transition.
        self._defers_names = topic not in INTERNAL_TOPICS
        #: Runs while something appended has to be on disk before it may be acknowledged (`flush.messages`).
        self._flushing: asyncio.Task[None] | None = None
        #: Producers, and clients that wait until every live replica has deleted what is below an offset.
        self._waiting: list[Waiting[_Acknowledgement]] = []
        self._deleting: list[Waiting[int]] = []

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, epoch={self.leader_epoch}, leader={self.is_leader})"

    # --- roles ------------------------------------------------------------------------------------

    def become(self, registration: PartitionRegistration) -> None:
        """Take up the role that the metadata gives."""
        node_id, log = self._ports.node_id, self.log
        if self._leadership is not None and is_outdated(self._leadership, registration):
            return
        self.is_in_sync = node_id in registration.isr
        if registration.leader != node_id:
            is_new_epoch = registration.leader_epoch != self.leader_epoch
            self._resign()
            self.leader = registration.leader
            self.leader_epoch = registration.leader_epoch
            if is_new_epoch:
                log.state.wake_waiting()  # parked fetches for which another broker is to be asked
            return
        is_new_epoch = registration.leader_epoch != self.leader_epoch
        if is_new_epoch:
            log.epoch_file.begin(registration.leader_epoch)
        self.leader = node_id
        self.leader_epoch = registration.leader_epoch
        self.is_leader = True
        self._registration = registration
        self._look_at_directories(registration)
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
        if self._deleting:
            self._look_at_deletions()
        if is_new_epoch:
            log.state.wake_waiting()  # parked fetches of followers in the epoch before
        else:
            self._expect_followers()

    def resign(self) -> None:
        """Lead the partition no more. Producers that wait for followers have to ask the next leader."""
        was_leader = self.is_leader
        self._resign()
        if was_leader:
            self.log.state.wake_waiting()

    def _resign(self) -> None:
        if self._deleting:
            answer(self._deleting, lambda _: ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._send_to_next_leader()
        self.leader = NO_LEADER
        self.is_leader = False
        self._leadership = self._registration = None
        self._commits_at_once = self._refuses_acks_all = self.acknowledges_at_once = False
        self.is_cut_off = False

    def _send_to_next_leader(self) -> None:
        """Answer the producers that wait for followers."""
        if self._waiting and self._waits_for_followers():
            answer(
                self._waiting,
                lambda each: ErrorCode.NOT_LEADER_OR_FOLLOWER if each.required_acks == ACKS_ALL else None,
            )

    def configure(self, config: LogConfig) -> None:
        """Apply the topic's changed settings."""
        self.log.state.reconfigure(config)
        self._throttle(config)
        if self._leadership is not None:
            self._lead(self._leadership._replace(min_insync_replicas=config.min_insync_replicas))

    def _throttle(self, config: LogConfig) -> None:
        here = self.partition, self._ports.node_id
        self._is_throttled_leader = is_throttled(config.leader_replication_throttled_replicas, *here)
        self.is_throttled_follower = is_throttled(config.follower_replication_throttled_replicas, *here)

    def _lead(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._commits_at_once = commits_at_once(leadership)
        self._refuses_acks_all = self.is_cut_off or is_under_min_isr(leadership)
        self.acknowledges_at_once = self._commits_at_once and self._flushing is None
        self._commit()

    def _take(self, event: Event) -> None:
        """Let the core decide on `event`, and carry the decision out."""
        assert self._leadership is not None
        step = transition(self._leadership, event)
        if step.state.isr is not self._leadership.isr or self._commits_at_once:
            self._lead(step.state)
        else:  # the progress of followers changes none of the flags
            self._leadership = step.state
            self._commit()
        for effect in step.effects:
            assert isinstance(effect, Start) and isinstance(effect.work, AlterPartition)
            # The controller tells at INFO what becomes of it, of all partitions at once.
            logger.debug(
                "[Partition %s] Asking for the ISR %s instead of %s (high watermark %d, log end %d).",
                self.log.name,
                [replica_id for replica_id, _ in effect.work.new_isr],
                list(step.state.isr.committed),
                *self._log_offsets(),
            )
            self._ports.isr_changes.alter_partition(
                self.topic_id, self.partition, effect.work, self._isr_change_answered
            )

    def _isr_change_answered(self, event: IsrChangeAnswered) -> None:
        if self._leadership is not None:
            self._take(event)
            self._expect_followers()

    def _expect_followers(self) -> None:
        """The next fetch of a follower that is not in sync may let it join, also if it asks for the same."""
        leadership = self._leadership
        if leadership is not None and not leadership.followers.keys() <= leadership.isr.maximal:
            self.log.state.wake_waiting()

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
        if self._refuses_acks_all and required_acks == ACKS_ALL:
            raise self._why_refused()
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
        if self._refuses_acks_all:
            raise self._why_refused()
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
        if required_acks != ACKS_ALL or not self._waits_for_followers():
            timeout_ms = None
        awaited = _Acknowledgement(next_offset, required_acks)
        return wait(self._waiting, awaited, self._ports.clock, timeout_ms)

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

    def delete_records(self, before_offset: int) -> DeletedRecords:
        """Delete the records below an offset (-1: the high watermark) here; followers do as they hear of it.

        Raises:
            KafkaError: POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE beyond the
                high watermark.
        """
        cleanup_policy = self.log.state.config.cleanup_policy
        if "delete" not in cleanup_policy and cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = self.log.state.high_watermark if before_offset == HIGH_WATERMARK else before_offset
        self.log.trimmer.delete_records(before_offset)
        return DeletedRecords(offset, self.low_watermark)

    def deleted(self, offset: int, timeout_ms: int) -> Awaitable[ErrorCode] | None:
        """None if every live replica has deleted the records below `offset`, else an awaitable for that.

        It gives REQUEST_TIMED_OUT after `timeout_ms`, NOT_LEADER_OR_FOLLOWER if another broker leads first.
        """
        if offset <= self.low_watermark:
            return None
        return wait(self._deleting, offset, self._ports.clock, timeout_ms)

    @property
    def low_watermark(self) -> int:
        """Everything below is deleted on all live replicas; -1 while one has not told where it starts."""
        leadership, log_start_offset = self._leadership, self.log.state.log_start_offset
        if leadership is None or not leadership.followers:
            return log_start_offset
        live = {
            replica_id
            for replica_id in leadership.followers
            if (broker := self._ports.registration_of(replica_id)) is not None and not broker.fenced
        }
        return low_watermark(leadership, log_start_offset, live)

    def _look_at_deletions(self) -> None:
        """Answer those whose deletions have come to all live replicas."""
        low_watermark = self.low_watermark
        answer(self._deleting, lambda offset: ErrorCode.NONE if offset <= low_watermark else None)

    def _why_refused(self) -> KafkaError:
        assert self._leadership is not None
        if self.is_cut_off:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return not_enough_replicas(self._leadership, self.log.name)

    # --- reading ----------------------------------------------------------------------------------

    def limit_for_replica(self, replica_id: int, leader_epoch: int) -> Limit:
        """The limit of another broker's reads, which names this leader epoch or none (-1).

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, or without an epoch NOT_LEADER_OR_FOLLOWER, for a broker that is
                not assigned to the partition.
        """
        assert self._leadership is not None
        return limit_for_replica(self._leadership, replica_id, leader_epoch)

    @property
    def is_end_known(self) -> bool:
        """False while the high watermark of a new leader may be older than what consumers have seen."""
        return self._leadership is None or is_end_known(self._leadership, self.log.state.high_watermark)

    def nearest_replica(self, rack: str, fetch_offset: int, listener_name: str) -> int | None:
        """The follower from which a consumer in `rack` reads better than from here, if there is one."""
        leadership = self._leadership
        if leadership is None:
            return None
        brokers = (self._ports.registration_of(one) for one in (leadership.node_id, *leadership.followers))
        racks = {
            broker.broker_id: broker.rack
            for broker in brokers
            if broker is not None and not broker.fenced and listener_name in broker.listeners
        }
        return nearest_replica(leadership, rack, racks, fetch_offset)

    @property
    def awaited(self) -> list[int]:
        """The followers in sync that have not fetched in this leader epoch; none if it is not led here."""
        if self._leadership is None:
            return []
        followers = self._leadership.followers
        return [
            replica_id
            for replica_id in self._leadership.isr.committed
            if replica_id in followers and followers[replica_id].fetched_ms is None
        ]

    def is_held_back(self, replica_id: int) -> bool:
        """Whether this follower gets no records now: it is not in sync, the partition is throttled here, and
        too much has been sent to followers of such partitions.
        """
        leadership = self._leadership
        return (
            self._is_throttled_leader
            and leadership is not None
            and replica_id not in leadership.isr.committed
            and self._ports.follower_rate.is_exceeded(self._ports.clock.monotonic_ms())
        )

    def sent(self, size_bytes: int) -> None:
        """Records have been sent to a follower: they count if the partition is throttled here."""
        if self._is_throttled_leader:
            self._ports.follower_rate.count(size_bytes, self._ports.clock.monotonic_ms())

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

    def follower_fetched(
        self, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int = UNKNOWN_OFFSET
    ) -> None:
        """An assigned follower has everything below `fetch_offset`; `broker_epoch` is -1 if it names none.

        It may move the high watermark, and the follower may join the ISR. A fetch that is answered with an
        error or a diverging epoch does not come here.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the broker has been registered again since (KIP-903).
        """
        broker = self._ports.registration_of(replica_id)
        event = FollowerFetched(
            self._ports.clock.monotonic_ms(),
            replica_id,
            fetch_offset,
            self._log_offsets(),
            broker_epoch,
            NO_BROKER_EPOCH if broker is None else broker.epoch,
            broker is not None and broker.active and replica_id not in self._lost,
            log_start_offset,
        )
        if event.is_stale:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._take(event)
        if self._deleting:
            self._look_at_deletions()

    def brokers_changed(self) -> None:
        """Look at the brokers of the newest image: who may join the ISR, and who has to delete records."""
        leadership, registration = self._leadership, self._registration
        if leadership is None or registration is None or not leadership.followers:
            return
        self._look_at_directories(registration)
        brokers = (self._ports.registration_of(replica_id) for replica_id in leadership.followers)
        self._take(
            BrokersChanged(
                {
                    broker.broker_id: broker.epoch
                    for broker in brokers
                    if broker is not None and broker.active and broker.broker_id not in self._lost
                }
            )
        )
        self._expect_followers()
        if self._deleting:
            self._look_at_deletions()

    def _look_at_directories(self, registration: PartitionRegistration) -> None:
        """Note which replicas cannot join the ISR, though their brokers live.

        Apache Kafka does not ask for this: there, a broker that serves from its other directories keeps the
        high watermark where it is until `replica.lag.time.max.ms` is over.
        """
        brokers = (self._ports.registration_of(replica_id) for replica_id in registration.replicas)
        self._lost = frozenset(
            broker.broker_id
            for broker in brokers
            if broker is not None and not has_online_directory(broker, registration)
        )

    def check_lag(self) -> None:
        """Ask for an ISR without the followers that lag; due every half of `replica.lag.time.max.ms`."""
        if self._leadership is not None and self._leadership.followers:
            self._take(TimePassed(self._ports.clock.monotonic_ms(), self._log_offsets()))

    def check_controller(self, silent_for_ms: int | None) -> bool:
        """The controller has not answered this broker for so long; None: it answers. Return whether the
        partition is now cut off, and was not before.

        Where a follower in sync is silent as well, others may lead the partition by now, and nothing is
        committed here. Producers with acks=all are then sent to the leader that the other brokers know. In
        Apache Kafka their requests time out here again and again, until they ask for the leader in their own
        time, after five minutes by default. All others are served as before.
        """
        leadership = self._leadership
        if leadership is None:
            return False
        was_cut_off, now_ms = self.is_cut_off, self._ports.clock.monotonic_ms()
        self.is_cut_off = silent_for_ms is not None and is_cut_off(leadership, now_ms, silent_for_ms)
        if self.is_cut_off is was_cut_off:
            return False
        if self.is_cut_off:
            self._send_to_next_leader()
        self._lead(leadership)
        return self.is_cut_off

    # --- committing -------------------------------------------------------------------------------

    def _appended(self, flush_due: bool) -> None:
        """Commit the appended records: at once, or when the sync that `flush.messages` asks for is done.

        Where others are in sync, it is their fetches that commit.
        """
        state = self.log.state
        high_watermark_before = state.high_watermark
        if flush_due or self._flushing is not None:
            if self._flushing is None:
                self._flushing = asyncio.get_running_loop().create_task(self._flush())
                self.acknowledges_at_once = False
        elif self._commits_at_once:
            state.advance_high_watermark(state.log_end_offset)
            return
        else:
            self._commit()
        if state.on_advance and state.high_watermark == high_watermark_before:
            state.wake_waiting()  # parked fetches of followers, which read to the log end

    def _commit(self) -> None:
        """Move the high watermark as far as it may, and acknowledge the requests that this allows."""
        leadership = self._leadership
        if leadership is not None:
            state, offset = self.log.state, self._local_offset()
            if not self._commits_at_once:
                now_ms = self._ports.clock.monotonic_ms()
                offset = high_watermark(leadership, state, offset, now_ms)
            state.advance_high_watermark(offset)
        if self._waiting:
            self._acknowledge()

    def _local_offset(self) -> int:
        """The offset up to which this node has records; those on disk alone if `flush.messages` is set."""
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
        error = ErrorCode.KAFKA_STORAGE_ERROR  # what is not on disk is not acknowledged
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
            error = ErrorCode.NONE
        except KafkaError as failure:
            error = failure.code
        except Exception:  # such as no thread that could do it
            logger.exception("%s could not be synced", self.log.name)
        finally:
            self._flushing = None
            self.acknowledges_at_once = self._commits_at_once
            if error is ErrorCode.NONE:
                self._acknowledge()
            else:
                answer(self._waiting, lambda _: error)

    def _acknowledge(self) -> None:
        """Answer the producers whose batches may be acknowledged by now."""
        answer(
            self._waiting,
            lambda each: (
                self._outcome(each.required_acks)
                if each.next_offset <= self._acknowledged_offset(each.required_acks)
                else None
            ),
        )

    def _outcome(self, required_acks: int) -> ErrorCode:
        """The answer for a batch that may be acknowledged."""
        if required_acks != ACKS_ALL or self._leadership is None:
            return ErrorCode.NONE
        return outcome_of_committed(self._leadership)
