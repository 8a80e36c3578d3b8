"""A partition that this node follows in one leader epoch.

`core/following.py` decides how to handle an answer of the leader; this file changes the log. Records go from
the received frame to the log without a copy. Truncation waits for the disk on the event loop. The lower
recovery point is on disk before new records replace the removed ones (`checkpoint_truncated`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Protocol

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.replica_writer import Copied
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.machine.step import Effect, Start
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages.fetch import PartitionData
from pykafka_broker.replication.core import following as rules
from pykafka_broker.replication.core.fetch_session import PartitionFetch
from pykafka_broker.replication.core.following import Answer, EpochEnd, Following, Phase
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.leading_replica import DeferredFiles
from pykafka_broker.replication.partition import Partition
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")


class FollowedLogs(Protocol):
    """The operations on logs that wait for disks."""

    @property
    def deferred_files(self) -> DeferredFiles:
        """Makes the missing files of appends."""
        ...

    def checkpoint_truncated(self, log: PartitionLog) -> Awaitable[bool]:
        """Write the recovery point of a truncated log; return whether it is on disk."""
        ...

    def flush(self, log: PartitionLog) -> Awaitable[object]:
        """Make a log durable; raises KafkaError."""
        ...

    def is_full(self, log: PartitionLog) -> bool:
        """Whether the disk of a log is full."""
        ...

    def write_failed(self, log: PartitionLog, error: OSError) -> None:
        """The disk of a log has refused a truncation."""
        ...


class FollowingPorts(NamedTuple):
    """The ports that all partitions of one fetcher share."""

    #: The prefix of each log line.
    fetcher_name: str
    clock: Clock
    logs: FollowedLogs
    #: The rate limit of all fetchers together for throttled replicas that lag (KIP-73).
    throttled_rate: RateLimit
    #: `replica.fetch.backoff.ms`
    backoff_ms: int


class FollowingReplica:
    """One partition of a fetcher. Event loop only."""

    __slots__ = (
        "_following",
        "_ports",
        "_todo",
        "is_current",
        "lag",
        "partition",
        "refusals",
    )

    def __init__(self, partition: Partition, ports: FollowingPorts) -> None:
        self.partition = partition
        #: False once the partition was left: later answers about it are ignored.
        self.is_current = True
        #: The number of consecutive answers with errors.
        self.refusals = 0
        self._ports = ports
        state = partition.log.state
        damaged_from = None if partition.is_in_sync else state.damaged_from
        step = rules.follow(partition.leader_epoch, state, damaged_from)
        self._following: Following = step.state
        #: Effects to carry out before the leader is asked.
        self._todo = step.effects
        #: How far the log was below the leader's high watermark in the newest answer; None before that.
        self.lag: int | None = None

    # --- what to ask the leader for ---------------------------------------------------------------

    @property
    def leader_epoch(self) -> int:
        """The epoch in which the leader is asked."""
        return self._following.leader_epoch

    @property
    def has_stopped(self) -> bool:
        """Whether a failure ends the fetching until the next leader epoch."""
        return self._following.phase is Phase.STOPPED

    @property
    def phase(self) -> Phase:
        """What the leader is asked for next."""
        return self._following.phase

    @property
    def wanted(self) -> PartitionFetch:
        """What to fetch in the phase FETCHING."""
        following = self._following
        return PartitionFetch(
            following.leader_epoch,
            following.fetch_offset,
            following.last_fetched_epoch,
            self.partition.log.state.log_start_offset,
        )

    def due_ms(self, now_ms: int) -> int | None:
        """When the leader may be asked: `now_ms`, later if held back, None while waiting for metadata."""
        if not rules.is_due(self._following, now_ms):
            return self._following.retry_at_ms
        is_slow = self.lag != 0 and self.partition.is_throttled_follower and self.phase is Phase.FETCHING
        if is_slow and self._ports.throttled_rate.is_exceeded(now_ms):
            return now_ms + self._ports.backoff_ms
        return now_ms

    def has_to_catch_up(self, now_ms: int) -> bool:
        """Whether effects remain that are due before the leader is asked."""
        return (bool(self._todo) or self.partition.is_unsettled) and rules.is_due(self._following, now_ms)

    async def catch_up(self) -> None:
        """Carry out the remaining effects."""
        todo, self._todo = self._todo, ()
        await self._carry_out(todo, None)
        if self.partition.is_unsettled and self.is_current:
            await self._settle()

    # --- what the leader answers ------------------------------------------------------------------

    def begin_epoch(self, wanted: PartitionFetch, records: Buffer) -> NamesDue | None:
        """The file that the answer to `wanted` needs if a leader epoch begins with it, or None."""
        log, leader_epoch = self.partition.log, self._following.leader_epoch
        if log.state.latest_epoch == leader_epoch or wanted.leader_epoch != leader_epoch:
            return None
        return log.replica_writer.begin_epoch(records, leader_epoch)

    async def fetched(self, wanted: PartitionFetch, data: PartitionData) -> None:
        """The leader has answered `wanted`."""
        error, diverging = error_of(data.error_code), data.diverging_epoch
        self.refusals = 0 if error is ErrorCode.NONE else self.refusals + 1
        if diverging is not None and diverging.end_offset < 0 and diverging.epoch < 0:
            diverging = None
        answer = Answer(error, None if diverging is None else EpochEnd(diverging.epoch, diverging.end_offset))
        log_state = self.partition.log.state
        step = rules.fetched(self._following, wanted, answer, log_state, self._retry_at_ms())
        self._following = step.state
        await self._carry_out(step.effects, data)
        if error is ErrorCode.NONE:
            self.lag = max(0, data.high_watermark - self._following.fetch_offset)
            if data.records and self.partition.is_throttled_follower:
                self._ports.throttled_rate.count(len(data.records), self._ports.clock.monotonic_ms())

    async def offset_told(self, asked: Phase, error: ErrorCode, offset: int) -> None:
        """The leader has answered with the end of its log, or for ASKING_START with its start."""
        told = rules.leader_end_told if asked is Phase.ASKING_END else rules.leader_start_told
        step = told(self._following, error, offset, self.partition.log.state, self._retry_at_ms())
        self._following = step.state
        await self._carry_out(step.effects, None)

    def _retry_at_ms(self) -> int:
        return self._ports.clock.monotonic_ms() + self._ports.backoff_ms

    # --- the log ----------------------------------------------------------------------------------

    async def _carry_out(self, effects: tuple[Effect, ...], data: PartitionData | None) -> None:
        """Carry out the core's decision; a failure stops or holds back only this partition."""
        name, log = self._ports.fetcher_name, self.partition.log
        try:
            for effect in effects:
                assert isinstance(effect, Start)
                work = effect.work
                if isinstance(work, rules.Append):
                    assert data is not None
                    if not data.records or await self._append(data.records):
                        self._take_over_offsets(data)
                elif isinstance(work, rules.TruncateTo):
                    await self._truncate(work.offset, is_reset=False)
                elif isinstance(work, rules.StartAt):
                    await self._truncate(work.offset, is_reset=True)
                # The phase makes the next round ask the leader for its offsets.
        except KafkaError as error:
            self._refused(error)
        except OSError as error:
            logger.error("%s %s cannot be truncated: %s", name, log.name, error)
            self._ports.logs.write_failed(log, error)
            if log.state.offline is None:  # a full disk, or too many open files: it is tried again
                self._todo = () if effects is rules.APPENDS else effects
                self._following = rules.held_back(self._following, self._retry_at_ms())
            else:
                self._following = rules.stopped(self._following)
        except Exception:
            logger.exception("%s %s is not followed any more", name, log.name)
            self._following = rules.stopped(self._following)

    async def _append(self, records: Buffer) -> bool:
        """Append the records of an answer; False if the partition was left meanwhile."""
        fetched, log = self._following.fetch_offset, self.partition.log
        if log.state.log_end_offset != fetched:
            raise IllegalState(
                f"Offset mismatch for partition {log.name}: fetched offset = {fetched}, "
                f"log end offset = {log.state.log_end_offset}."
            )
        logs, left = self._ports.logs, memoryview(records)

        def append() -> Copied | NamesDue:
            nonlocal left
            if not self.is_current:
                return Copied(0)
            copied = self.partition.log.replica_writer.append(
                left,
                leader_epoch=self._following.leader_epoch,
                now_ms=self._ports.clock.now_ms(),
                defers_names=True,
            )
            counts = self.partition.counts
            counts.replication_bytes_in += copied.size_bytes
            if self.partition.is_being_added:
                counts.reassignment_bytes_in += copied.size_bytes
            left = left[copied.size_bytes :]
            return copied if copied.names_due is None else copied.names_due

        copied = append()
        if isinstance(copied, NamesDue):
            copied = await logs.deferred_files.repeat(copied, append)
        if copied.flush_due and self.is_current:
            await logs.flush(self.partition.log)
        return self.is_current

    def _take_over_offsets(self, data: PartitionData) -> None:
        """Take over the leader's high watermark and log start offset."""
        log = self.partition.log
        state = log.state
        state.advance_high_watermark(data.high_watermark)
        log.trimmer.advance_log_start_offset(min(data.log_start_offset, state.high_watermark))
        self._following = rules.at_log_end(self._following, state)

    async def _truncate(self, offset: int, *, is_reset: bool) -> None:
        log = self.partition.log
        state = log.state
        if offset < state.high_watermark:
            logger.warning(
                "%s Truncating %s to offset %d below high watermark %d",
                self._ports.fetcher_name,
                log.name,
                offset,
                state.high_watermark,
            )
        end_before = state.log_end_offset
        try:
            if is_reset:
                log.trimmer.reset_to(offset)
            else:
                log.trimmer.truncate_to(offset)
        finally:  # a part of it may be gone, also if the disk refuses to go on
            self._following = rules.at_log_end(self._following, state)
            if state.log_end_offset != end_before:
                self.partition.is_unsettled = True
        if self.partition.is_unsettled:
            await self._settle()

    async def _settle(self) -> None:
        """Write the checkpoint of a truncation; until it is written nothing is fetched."""
        if await self._ports.logs.checkpoint_truncated(self.partition.log):
            self.partition.is_unsettled = False
        else:
            self._following = rules.held_back(self._following, self._retry_at_ms())

    def _refused(self, error: KafkaError) -> None:
        """The log has refused the records: a failed disk stops the partition, other errors are retried."""
        name, log = self._ports.fetcher_name, self.partition.log
        at_end = rules.at_log_end(self._following, log.state)
        if log.state.offline is not None or error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # A directory out of service has one log line for all its partitions.
            level = logging.ERROR if log.state.offline is None else logging.DEBUG
            logger.log(level, "%s %s is not followed any more: %s", name, log.name, error.message)
            self._following = rules.stopped(at_end)
        else:
            # A full disk has log lines of its own.
            level = logging.DEBUG if self._ports.logs.is_full(log) else logging.ERROR
            text = "%s %s: the leader's records are refused: %s"
            logger.log(level, text, name, log.name, error.message)
            self._following = rules.held_back(at_end, self._retry_at_ms())
