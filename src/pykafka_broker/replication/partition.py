"""One partition held by this node: its log, and the rules of replication around it.

The core (`core/`) decides when the high watermark moves and who may do what; a `Partition` carries that out
on the log. A partition without followers commits what is appended at once or, where `flush.messages` asks for
that, as soon as it is on disk. Appends and fetches read flags that are worked out when the leadership
changes, so that replication costs them nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.state import Limit
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core.access import ACKS_ALL, limit_for_replica, not_enough_replicas
from pykafka_broker.replication.core.high_watermark import high_watermark
from pykafka_broker.replication.core.state import Leadership, LogOffsets
from pykafka_broker.replication.core.transitions import ReplicationSettings, lead

Result = TypeVar("Result")


class SyncThreads(Protocol):
    """Threads for the syncs that acknowledgements wait for."""

    def run(self, log: PartitionLog, job: Callable[[], Result]) -> Awaitable[Result]:
        """Run `job` in a thread for the disk of `log`."""
        ...


class PartitionPorts(NamedTuple):
    """What every partition of a node uses."""

    node_id: int
    sync_threads: SyncThreads
    clock: Clock


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
        "is_leader",
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
        self.leader_epoch = -1
        self.is_leader = False
        self._ports = ports
        self._leadership: Leadership | None = None
        # What appends look at, worked out by `_lead`.
        self._commits_at_once = False
        self._is_under_min_isr = False
        #: Producers can wait for a file to be made; coordinators append in the middle of a transition.
        self._defers_names = topic not in INTERNAL_TOPICS
        #: Runs while something appended has to be on disk before it may be acknowledged (`flush.messages`).
        self._flushing: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[ErrorCode]]] = []

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, epoch={self.leader_epoch}, leader={self.is_leader})"

    # --- roles ------------------------------------------------------------------------------------

    def become(self, registration: PartitionRegistration) -> None:
        """Take up the role that the metadata gives."""
        node_id, log = self._ports.node_id, self.log
        if registration.leader != node_id:
            self.resign()
            self.leader_epoch = registration.leader_epoch
            return
        if registration.leader_epoch != self.leader_epoch:
            log.epoch_file.begin(registration.leader_epoch)
        self.leader_epoch = registration.leader_epoch
        self.is_leader = True
        self._lead(
            lead(
                self._leadership,
                node_id,
                registration,
                ReplicationSettings(log.state.config.min_insync_replicas),
                log.state.log_end_offset,
                self._ports.clock.monotonic_ms(),
            )
        )

    def resign(self) -> None:
        """Lead the partition no more."""
        self.is_leader = False
        self._leadership = None
        self._commits_at_once = self._is_under_min_isr = False

    def configure(self, config: LogConfig) -> None:
        """Apply the topic's changed settings."""
        self.log.state.reconfigure(config)
        if self._leadership is not None:
            self._lead(self._leadership._replace(min_insync_replicas=config.min_insync_replicas))

    def _lead(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._commits_at_once = leadership.commits_at_once
        self._is_under_min_isr = leadership.is_under_min_isr
        self._commit(
            self.log.state.log_end_offset if self._flushing is None else self.log.state.recovery_point
        )

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
        """Append what a producer sent; `guard` is that of a transaction's first batch.

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

        `guard` and `transaction_version` are for what a transaction writes, and for its marker.

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

    def acknowledged(self, next_offset: int) -> Awaitable[ErrorCode] | None:
        """None if everything below `next_offset` may be acknowledged now, else what to wait for."""
        if self._flushing is None or self.log.state.recovery_point >= next_offset:
            return None
        waiter: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._waiting.append((next_offset, waiter))
        return waiter

    def delete_records(self, before_offset: int) -> int:
        """DeleteRecords up to an offset (-1: the high watermark); the new low watermark.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the high watermark.
        """
        return self.log.trimmer.delete_records(before_offset)

    def _not_enough_replicas(self) -> KafkaError:
        assert self._leadership is not None
        return not_enough_replicas(self._leadership, self.log.name)

    # --- reading ----------------------------------------------------------------------------------

    def limit_for_replica(self, replica_id: int) -> Limit:
        """How far another broker may read.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER for a broker that is not assigned to the partition.
        """
        assert self._leadership is not None
        return limit_for_replica(self._leadership, replica_id)

    # --- committing -------------------------------------------------------------------------------

    def _appended(self, flush_due: bool) -> None:
        """Commit what was appended: at once, or when the sync that `flush.messages` asks for is done.

        Where others are in sync, it is their fetches that commit.
        """
        if flush_due or self._flushing is not None:
            if self._flushing is None:
                self._flushing = asyncio.get_running_loop().create_task(self._flush())
        elif self._commits_at_once:
            state = self.log.state
            state.advance_high_watermark(state.log_end_offset)

    def _commit(self, local_offset: int) -> None:
        """Move the high watermark as far as it may, given that this node has all below `local_offset`."""
        log, leadership = self.log, self._leadership
        if leadership is None:
            return
        if not self._commits_at_once:
            offsets = LogOffsets(log.state.high_watermark, log.state.log_end_offset)
            local_offset = high_watermark(leadership, offsets, local_offset, self._ports.clock.monotonic_ms())
        log.state.advance_high_watermark(local_offset)

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
                self._commit(log.state.recovery_point)
                self._answer(log.state.recovery_point, ErrorCode.NONE)
        except KafkaError as failure:
            error = failure.code
        finally:
            self._flushing = None
            self._answer(self.log.state.log_end_offset, error)

    def _answer(self, up_to_offset: int, error: ErrorCode) -> None:
        """Answer the producers that wait for offsets up to `up_to_offset`."""
        waiting, self._waiting = self._waiting, []
        for next_offset, waiter in waiting:
            if next_offset > up_to_offset:
                self._waiting.append((next_offset, waiter))
            elif not waiter.done():
                waiter.set_result(error)
