"""A partition that this node leads: the rules of replication, carried out on its log.

The core (`core/`) decides when the high watermark moves and who may do what. Where no follower counts,
appended records are committed at once or, where `flush.messages` asks for that, as soon as they are on disk.
Appends and consumers' fetches read flags that are worked out when the leadership changes, so that replication
costs them nothing. Fetches of followers and the lag check go through `core.transitions.transition`, whose
requests to the controller go to `IsrChanges`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from pykafka_broker.cluster.image import BrokerRegistration, PartitionRegistration
from pykafka_broker.cluster.partitions import without_online_directory
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.limit import Limit
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.step import Start
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core.access import (
    ACKS_ALL,
    NO_LEADER_EPOCH,
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
from pykafka_broker.replication.core.in_sync import awaited_followers, is_cut_off, is_under_min_isr
from pykafka_broker.replication.core.nearest import nearest_replica
from pykafka_broker.replication.core.state import (
    NO_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    Leadership,
    LogOffsets,
)
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.core.transitions import (
    ReplicationSettings,
    is_outdated,
    leadership_of,
    transition,
)
from pykafka_broker.replication.flushing import Flushing, SyncThreads
from pykafka_broker.replication.records_deletion import RecordsDeletion
from pykafka_broker.replication.sending import Sending
from pykafka_broker.replication.waiting import WaitingClients
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.cluster.Partition")


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


class LeadingReplica:
    """The role of a partition's leader. Event loop only.

    A partition keeps one for all of the times that this node leads: a client that waits for a sync is
    answered after it, whoever leads then.
    """

    __slots__ = (
        "_commits_at_once",
        "_defers_names",
        "_flushing",
        "_lost",
        "_ports",
        "_producers",
        "_refuses_acks_all",
        "_registration",
        "acknowledges_at_once",
        "deletion",
        "is_cut_off",
        "leader_epoch",
        "leadership",
        "log",
        "sending",
        "topic_id",
    )

    def __init__(self, topic_id: bytes, log: PartitionLog, ports: PartitionPorts) -> None:
        self.topic_id = topic_id
        self.log = log
        #: The epoch in which this node leads; NO_LEADER_EPOCH while another broker leads.
        self.leader_epoch = NO_LEADER_EPOCH
        #: Appended records may be acknowledged at once, whatever acks a producer asks for.
        self.acknowledges_at_once = False
        #: The controller is silent, and so is a follower that is in sync as far as is known here.
        self.is_cut_off = False
        self._ports = ports
        self.leadership: Leadership | None = None
        #: What the metadata says of the partition while it is led here.
        self._registration: PartitionRegistration | None = None
        #: The replicas that cannot join the ISR, though their brokers live: their directories do not work.
        #: Apache Kafka does not ask for this: there, such a broker keeps the high watermark where it is until
        #: `replica.lag.time.max.ms` is over.
        self._lost: frozenset[int] = frozenset()
        # Flags that appends read, worked out by `_install`.
        self._commits_at_once = False
        self._refuses_acks_all = False
        #: Producers can wait for a file to be made; coordinators append in the middle of a transition.
        self._defers_names = log.topic not in INTERNAL_TOPICS
        self._flushing = Flushing(self, ports.sync_threads)
        self._producers: WaitingClients[_Acknowledgement] = WaitingClients(ports.clock)
        self.deletion = RecordsDeletion(self, ports.registration_of, ports.clock)
        self.sending = Sending(self, ports.follower_rate, ports.clock)

    # --- the leadership ---------------------------------------------------------------------------

    @property
    def has_resigned(self) -> bool:
        """Another broker leads, or none does."""
        return self.leadership is None

    def is_outdated(self, registration: PartitionRegistration) -> bool:
        """The controller's answer to a change of the ISR has come before this registration."""
        return self.leadership is not None and is_outdated(self.leadership, registration)

    def take_up(self, registration: PartitionRegistration) -> None:
        """Lead as the metadata says: from now on, in a new epoch, or with other replicas."""
        state, is_new_epoch = self.log.state, registration.leader_epoch != self.leader_epoch
        self.leader_epoch = registration.leader_epoch
        self._registration = registration
        self.sending.configure(state.config, self._ports.node_id)
        self._lost = without_online_directory(registration, self._ports.registration_of)
        self._install(
            leadership_of(
                self.leadership,
                self._ports.node_id,
                registration,
                ReplicationSettings(state.config.min_insync_replicas, self._ports.lag_time_max_ms),
                state.log_end_offset,
                self._ports.clock.monotonic_ms(),
            )
        )
        self.deletion.followers_moved()
        if is_new_epoch:
            state.wake_waiting()  # parked fetches of followers in the epoch before
        else:
            self._expect_followers()

    def resign(self) -> None:
        """Lead the partition no more. Producers that wait for followers have to ask the next leader."""
        self.deletion.resign()
        self._send_to_next_leader()
        self.leader_epoch = NO_LEADER_EPOCH
        self.leadership = self._registration = None
        self._commits_at_once = self._refuses_acks_all = self.acknowledges_at_once = False
        self.is_cut_off = False

    def _send_to_next_leader(self) -> None:
        """Answer the producers that wait for followers."""
        if self._producers and self._waits_for_followers():
            self._producers.answer(
                lambda each: ErrorCode.NOT_LEADER_OR_FOLLOWER if each.required_acks == ACKS_ALL else None
            )

    def configure(self, config: LogConfig) -> None:
        """Go by the topic's changed settings, which the log has already."""
        self.sending.configure(config, self._ports.node_id)
        if self.leadership is not None:
            self._install(self.leadership._replace(min_insync_replicas=config.min_insync_replicas))

    def _install(self, leadership: Leadership) -> None:
        self.leadership = leadership
        self._commits_at_once = commits_at_once(leadership)
        self._refuses_acks_all = self.is_cut_off or is_under_min_isr(leadership)
        self.acknowledges_at_once = self._commits_at_once and not self._flushing.is_under_way
        self._commit()

    def _take(self, event: Event) -> None:
        """Let the core decide on `event`, and carry the decision out."""
        assert self.leadership is not None
        step = transition(self.leadership, event)
        if step.state.isr is not self.leadership.isr or self._commits_at_once:
            self._install(step.state)
        else:  # the progress of followers changes none of the flags
            self.leadership = step.state
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
                self.topic_id, self.log.partition, effect.work, self._isr_change_answered
            )

    def _isr_change_answered(self, event: IsrChangeAnswered) -> None:
        if self.leadership is not None:
            self._take(event)
            self._expect_followers()

    def _expect_followers(self) -> None:
        """The next fetch of a follower that is not in sync may let it join, also if it asks for the same."""
        leadership = self.leadership
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
        if self.has_resigned:
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
        return self._producers.wait(awaited, timeout_ms)

    def _why_refused(self) -> KafkaError:
        assert self.leadership is not None
        if self.is_cut_off:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return not_enough_replicas(self.leadership, self.log.name)

    # --- reading ----------------------------------------------------------------------------------

    def limit_for_replica(self, replica_id: int, leader_epoch: int) -> Limit:
        """The limit of another broker's reads, which names this leader epoch or none (-1).

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, or without an epoch NOT_LEADER_OR_FOLLOWER, for a broker that is
                not assigned to the partition.
        """
        assert self.leadership is not None
        return limit_for_replica(self.leadership, replica_id, leader_epoch)

    @property
    def is_end_known(self) -> bool:
        """False while the high watermark of a new leader may be older than what consumers have seen."""
        return self.leadership is None or is_end_known(self.leadership, self.log.state.high_watermark)

    def nearest_replica(self, rack: str, fetch_offset: int, listener_name: str) -> int | None:
        """The follower from which a consumer in `rack` reads better than from here, if there is one."""
        leadership = self.leadership
        if leadership is None:
            return None
        brokers = map(self._ports.registration_of, (leadership.node_id, *leadership.followers))
        racks = {
            broker.broker_id: broker.rack
            for broker in brokers
            if broker is not None and not broker.fenced and listener_name in broker.listeners
        }
        return nearest_replica(leadership, rack, racks, fetch_offset)

    @property
    def awaited(self) -> list[int]:
        """The followers in sync that have not fetched in this leader epoch; none if it is not led here."""
        return [] if self.leadership is None else awaited_followers(self.leadership)

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
        self.deletion.followers_moved()

    def brokers_changed(self) -> None:
        """Look at the brokers of the newest image: who may join the ISR, and who has to delete records."""
        leadership, registration = self.leadership, self._registration
        if leadership is None or registration is None or not leadership.followers:
            return
        self._lost = without_online_directory(registration, self._ports.registration_of)
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
        self.deletion.followers_moved()

    def check_lag(self) -> None:
        """Ask for an ISR without the followers that lag; due every half of `replica.lag.time.max.ms`."""
        if self.leadership is not None and self.leadership.followers:
            self._take(TimePassed(self._ports.clock.monotonic_ms(), self._log_offsets()))

    def check_controller(self, silent_for_ms: int | None) -> bool:
        """The controller has not answered this broker for so long; None: it answers. Return whether the
        partition is now cut off, and was not before.

        Where a follower in sync is silent as well, others may lead the partition by now, and nothing is
        committed here. Producers with acks=all are then sent to the leader that the other brokers know. In
        Apache Kafka their requests time out here again and again, until they ask for the leader in their own
        time, after five minutes by default. All others are served as before.
        """
        leadership = self.leadership
        if leadership is None:
            return False
        was_cut_off, now_ms = self.is_cut_off, self._ports.clock.monotonic_ms()
        self.is_cut_off = silent_for_ms is not None and is_cut_off(leadership, now_ms, silent_for_ms)
        if self.is_cut_off is was_cut_off:
            return False
        if self.is_cut_off:
            self._send_to_next_leader()
        self._install(leadership)
        return self.is_cut_off

    # --- committing -------------------------------------------------------------------------------

    def _appended(self, flush_due: bool) -> None:
        """Commit the appended records: at once, or when the sync that `flush.messages` asks for is done.

        Where others are in sync, it is their fetches that commit.
        """
        state = self.log.state
        high_watermark_before = state.high_watermark
        if flush_due or self._flushing.is_under_way:
            self._flushing.begin()
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
        leadership = self.leadership
        if leadership is not None:
            state, offset = self.log.state, self._local_offset()
            if not self._commits_at_once:
                now_ms = self._ports.clock.monotonic_ms()
                offset = high_watermark(leadership, state, offset, now_ms)
            state.advance_high_watermark(offset)
        if self._producers:
            self._acknowledge()

    def _local_offset(self) -> int:
        """The offset up to which this node has records; those on disk alone if `flush.messages` is set."""
        state = self.log.state
        return state.recovery_point if self._flushing.is_under_way else state.log_end_offset

    def _acknowledged_offset(self, required_acks: int) -> int:
        """Everything below may be acknowledged to a producer with these acks."""
        if required_acks == ACKS_ALL and self._waits_for_followers():
            return self.log.state.high_watermark
        return self._local_offset()

    def _waits_for_followers(self) -> bool:
        return self.leadership is not None and not self._commits_at_once

    def on_flushed(self) -> None:
        """More of what was appended is on disk."""
        self._commit()

    def on_flush_ended(self, error: ErrorCode) -> None:
        """All that was appended is on disk; or the error for those who wait, for it may not be."""
        self.acknowledges_at_once = self._commits_at_once
        if error is ErrorCode.NONE:
            self._acknowledge()
        else:
            self._producers.answer(lambda _: error)

    def _acknowledge(self) -> None:
        """Answer the producers whose batches may be acknowledged."""
        self._producers.answer(
            lambda each: (
                outcome_of_committed(self.leadership, each.required_acks)
                if each.next_offset <= self._acknowledged_offset(each.required_acks)
                else None
            )
        )
