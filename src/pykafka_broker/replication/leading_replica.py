"""A partition that this node leads: the rules of replication, carried out on its log.

The core (`core/`) decides when the high watermark moves (`committing.py` moves it) and which requests are
allowed. Appends and consumers' fetches read flags that are computed when the leadership changes, so that
replication costs them nothing. Fetches of followers and the lag check go through
`core.transitions.transition`, whose requests to the controller go to `IsrChanges`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from pykafka_broker.cluster.image import BrokerRegistration, PartitionRegistration
from pykafka_broker.cluster.replica_directories import without_online_directory
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.history import Tell, unheard
from pykafka_broker.machine.step import Start
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import NO_LEADER_EPOCH
from pykafka_broker.replication.committing import Committing
from pykafka_broker.replication.core.access import (
    ACKS_ALL,
    check_follower,
    is_end_known,
    not_enough_replicas,
)
from pykafka_broker.replication.core.events import (
    BrokersChanged,
    Event,
    FollowerFetched,
    IsrChangeAnswered,
    IsrProposal,
    TimePassed,
)
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
from pykafka_broker.replication.flushing import SyncThreads
from pykafka_broker.replication.lagging import why_not_in_sync
from pykafka_broker.replication.leader_throttle import LeaderThrottle
from pykafka_broker.replication.records_deletion import RecordsDeletion
from pykafka_broker.replication.topic_counts import TopicCounts
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.cluster.Partition")


Result = TypeVar("Result")


class IsrChanges(Protocol):
    """Asks the controller for changes of ISRs."""

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        change: IsrProposal,
        answered: Callable[[IsrChangeAnswered], None],
    ) -> None:
        """Ask for `change`, with this node's own broker epoch filled in, until the controller answers.

        `answered` is called with the answer, at once or later. The change also comes with the next image,
        before or after the answer.
        """
        ...


class DeferredFiles(Protocol):
    """Makes files in threads, for appends that can wait for them."""

    def repeat(self, due: NamesDue, append: Callable[[], Result | NamesDue]) -> Awaitable[Result]:
        """Make the missing files of an append, repeat the append, and return its result.

        Raises:
            KafkaError: the disk failed, the partition was deleted, or the append was refused.
        """
        ...

    def make_all(self, dues: Sequence[NamesDue]) -> Awaitable[object]:
        """Make the missing files of these appends; errors are left to the appends."""
        ...


class PartitionPorts(NamedTuple):
    """The parts of the node that every partition uses."""

    node_id: int
    sync_threads: SyncThreads
    deferred_files: DeferredFiles
    clock: Clock
    isr_changes: IsrChanges
    #: A broker's registration in the newest image; None if it is not registered.
    registration_of: Callable[[int], BrokerRegistration | None]
    #: The rate limit for throttled followers.
    follower_rate: RateLimit
    #: `replica.lag.time.max.ms`
    lag_time_max_ms: int = 30_000
    #: Takes decisions on ISRs.
    tell: Tell = unheard


class LeadingReplica:
    """The role of a partition's leader. Event loop only.

    A partition keeps one object for all its leaderships here, so that a client that waits for a sync is
    answered even if another broker leads after the sync.
    """

    __slots__ = (
        "_defers_names",
        "_lost",
        "_ports",
        "_refuses_acks_all",
        "_registration",
        "committing",
        "counts",
        "deletion",
        "is_cut_off",
        "leader_epoch",
        "leadership",
        "log",
        "throttle",
        "topic_id",
    )

    def __init__(
        self, topic_id: bytes, log: PartitionLog, ports: PartitionPorts, counts: TopicCounts
    ) -> None:
        self.topic_id = topic_id
        self.log = log
        #: Those of its topic.
        self.counts = counts
        #: The epoch in which this node leads; NO_LEADER_EPOCH while another broker leads.
        self.leader_epoch = NO_LEADER_EPOCH
        #: Whether the controller and an in-sync follower are silent.
        self.is_cut_off = False
        self._ports = ports
        self.leadership: Leadership | None = None
        #: The partition's registration in the metadata while it is led here.
        self._registration: PartitionRegistration | None = None
        #: The replicas on live brokers that cannot join the ISR, because their directories have failed. In
        #: Apache Kafka such a replica stops the high watermark for `replica.lag.time.max.ms`.
        self._lost: frozenset[int] = frozenset()
        #: A flag that appends read, computed by `_install`.
        self._refuses_acks_all = False
        #: Producers can wait for a file to be made; coordinators append within a transition and cannot.
        self._defers_names = log.topic not in INTERNAL_TOPICS
        self.committing = Committing(self, ports.sync_threads, ports.clock)
        self.deletion = RecordsDeletion(self, ports.registration_of, ports.clock)
        self.throttle = LeaderThrottle(self, ports.follower_rate, ports.clock)

    # --- the leadership ---------------------------------------------------------------------------

    @property
    def has_resigned(self) -> bool:
        """Whether this node does not lead the partition."""
        return self.leadership is None

    def is_outdated(self, registration: PartitionRegistration) -> bool:
        """Whether `registration` is older than the controller's last answer about the ISR."""
        return self.leadership is not None and is_outdated(self.leadership, registration)

    @property
    def adding(self) -> Sequence[int]:
        """The replicas that a reassignment adds."""
        return () if self._registration is None else self._registration.adding

    def take_up(self, registration: PartitionRegistration) -> None:
        """Begin to lead, or lead in a new epoch or with other replicas."""
        state, is_new_epoch = self.log.state, registration.leader_epoch != self.leader_epoch
        self.leader_epoch = registration.leader_epoch
        self._registration = registration
        self.throttle.configure(state.config, self._ports.node_id)
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
            state.wake_waiting()  # parked fetches of the previous epoch
        else:
            self._expect_followers()

    def resign(self) -> None:
        """Stop leading the partition. Producers that wait for followers must ask the next leader."""
        self.deletion.resign()
        self.committing.resign()
        self.leader_epoch = NO_LEADER_EPOCH
        self.leadership = self._registration = None
        self._refuses_acks_all = self.is_cut_off = False

    def configure(self, config: LogConfig) -> None:
        """Apply the topic's changed settings, which the log has already."""
        self.throttle.configure(config, self._ports.node_id)
        if self.leadership is not None:
            self._install(self.leadership._replace(min_insync_replicas=config.min_insync_replicas))

    def _install(self, leadership: Leadership) -> None:
        self.leadership = leadership
        self._refuses_acks_all = self.is_cut_off or is_under_min_isr(leadership)
        self.committing.take_up(leadership)

    def _take(self, event: Event) -> None:
        """Let the core decide on `event`, and carry the decision out."""
        assert self.leadership is not None
        before = self.leadership
        step = transition(before, event)
        if step.state.isr is not self.leadership.isr or self.committing.commits_at_once:
            self._install(step.state)
        else:  # the progress of followers changes none of the flags
            self.leadership = step.state
            self.committing.commit()
        for effect in step.effects:
            assert isinstance(effect, Start) and isinstance(effect.work, IsrProposal)
            # The controller logs the outcome at INFO, for all partitions at once.
            logger.debug(
                "[Partition %s] Asking for the ISR %s instead of %s (high watermark %d, log end %d).",
                self.log.name,
                [replica_id for replica_id, _ in effect.work.new_isr],
                list(step.state.isr.committed),
                *self._log_offsets(),
            )
            if len(effect.work.new_isr) > len(step.state.isr.committed):
                self.counts.isr_expands += 1
            else:
                self.counts.isr_shrinks += 1
            if isinstance(event, TimePassed):
                self._ports.tell(why_not_in_sync(self.log.name, before, event, effect.work))
            self._ports.isr_changes.alter_partition(
                self.topic_id, self.log.partition, effect.work, self._isr_change_answered
            )

    def _isr_change_answered(self, event: IsrChangeAnswered) -> None:
        self.counts.failed_isr_updates += event.error is not ErrorCode.NONE
        if self.leadership is not None:
            self._take(event)
            self._expect_followers()

    def _expect_followers(self) -> None:
        """Plan the partition again in the next fetches, so that followers outside the ISR can join it."""
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
    ) -> AppendResult | Awaitable[AppendResult]:
        """Append a producer's batch; `guard` is that of a transaction's first batch.

        Returns an awaitable if a thread must make a file first; a waiting batch is copied.

        Raises:
            KafkaError: the batch is refused (nothing was written), or the storage failed.
        """
        result = self._try_append(records, required_acks, produce_version, now_ms, guard)
        if isinstance(result, NamesDue):
            kept, clock = bytearray(records), self._ports.clock
            return self._ports.deferred_files.repeat(
                result,
                # Other batches may have been appended meanwhile, and LogAppendTime does not go back.
                lambda: self._try_append(kept, required_acks, produce_version, clock.now_ms(), guard),
            )
        return result

    def _try_append(
        self, records: Buffer, required_acks: int, produce_version: int, now_ms: int, guard: int
    ) -> AppendResult | NamesDue:
        try:
            if self._refuses_acks_all and required_acks == ACKS_ALL:
                raise self._why_refused()
            if self.leadership is None:  # this node has stopped leading while the append waited
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            result = self.log.writer.append_client(
                records,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                produce_version=produce_version,
                guard=guard,
                defers_names=self._defers_names,
            )
        except KafkaError as error:
            self.counts.refused(error, len(records))
            raise
        if not isinstance(result, NamesDue):
            self.committing.appended(result.flush_due)
            self.counts.appended(result.last_offset - result.first_offset + 1, len(records))
        return result

    def append_internal(
        self, batch: Buffer, now_ms: int, *, guard: int = NO_GUARD, transaction_version: int = 0
    ) -> int:
        """Append a coordinator's batch to the partition of its state; returns the log end offset after it.

        `guard` belongs to the records of a transaction, `transaction_version` to its marker.

        Raises:
            KafkaError: this node does not lead the partition, or the storage failed.
        """
        end_offset = self._try_append_internal(batch, now_ms, guard, transaction_version)
        assert not isinstance(end_offset, NamesDue)
        return end_offset

    def append_marker(self, batch: Buffer, now_ms: int, transaction_version: int) -> int | Awaitable[int]:
        """Append a transaction's marker, as `append_internal` does; an awaitable as for `append`."""
        end_offset = self._try_append_internal(batch, now_ms, NO_GUARD, transaction_version)
        if isinstance(end_offset, NamesDue):
            clock = self._ports.clock
            return self._ports.deferred_files.repeat(
                end_offset,
                lambda: self._try_append_internal(batch, clock.now_ms(), NO_GUARD, transaction_version),
            )
        return end_offset

    def _try_append_internal(
        self, batch: Buffer, now_ms: int, guard: int, transaction_version: int
    ) -> int | NamesDue:
        if self._refuses_acks_all:
            raise self._why_refused()
        if self.leadership is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
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
        if isinstance(result, NamesDue):
            return result
        self.committing.appended(result.flush_due)
        self.counts.appended(result.last_offset - result.first_offset + 1, len(batch))
        return log.state.log_end_offset

    def _why_refused(self) -> KafkaError:
        assert self.leadership is not None
        if self.is_cut_off:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return not_enough_replicas(self.leadership, self.log.name)

    # --- reading ----------------------------------------------------------------------------------

    def check_follower(self, replica_id: int, leader_epoch: int) -> None:
        """Refuse another broker that is no follower; `leader_epoch` is the current one or -1.

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, or without an epoch NOT_LEADER_OR_FOLLOWER, for a broker that is
                not assigned to the partition.
        """
        assert self.leadership is not None
        check_follower(self.leadership, replica_id, leader_epoch)

    @property
    def is_end_known(self) -> bool:
        """False while a new leader's high watermark may be behind the one that consumers have seen."""
        return self.leadership is None or is_end_known(self.leadership, self.log.state.high_watermark)

    def nearest_replica(self, rack: str, fetch_offset: int, listener_name: str) -> int | None:
        """The follower that is nearer to a consumer in `rack` than this node, or None."""
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

        The high watermark may move, and the follower may join the ISR. Not called for fetches that are
        answered with an error or a diverging epoch.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the broker has registered again since (KIP-903).
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

    def expects(self, replica_id: int) -> bool:
        """Whether this is a follower outside the ISR, which may join with its next fetch."""
        leadership = self.leadership
        return (
            leadership is not None
            and replica_id in leadership.followers
            and replica_id not in leadership.isr.maximal
        )

    def brokers_changed(self) -> None:
        """The brokers in the image have changed, which affects the ISR and deletions of records."""
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
        """Ask for an ISR without lagging followers; due at intervals of half `replica.lag.time.max.ms`."""
        if self.leadership is not None and self.leadership.followers:
            self._take(TimePassed(self._ports.clock.monotonic_ms(), self._log_offsets()))

    def check_controller(self, silent_for_ms: int | None) -> bool:
        """`silent_for_ms` is that of `ReplicaManager.check_controller`.

        Returns whether the partition has just been cut off: an in-sync follower is silent as well, so another
        broker may lead, and nothing is committed here. Producers with acks=all are then sent to the leader
        that other brokers know; other requests are served. In Apache Kafka the producers' requests time out
        here until they refresh their metadata, after five minutes by default.
        """
        leadership = self.leadership
        if leadership is None:
            return False
        was_cut_off, now_ms = self.is_cut_off, self._ports.clock.monotonic_ms()
        self.is_cut_off = silent_for_ms is not None and is_cut_off(leadership, now_ms, silent_for_ms)
        if self.is_cut_off is was_cut_off:
            return False
        if self.is_cut_off:
            self.committing.send_to_next_leader()
        self._install(leadership)
        return self.is_cut_off
