"""Moves partitions of this node from one log directory to another, as AlterReplicaLogDirs asks (KIP-113).

A mover copies the records that the future log lacks, step by step in a thread for the target's disk, at most
at `replica.alter.log.dirs.io.max.bytes.per.second`. When it has caught up, the controller is told of the new
directory (KIP-858). Then the mover copies the last batches and swaps the logs in one turn of the event loop,
so that no append comes in between. A move continues after a restart, and waits while the target is full. A
move that cannot be finished is given up without effect on clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.names import future_folder
from pykafka_broker.log.manager.future_log import LogMove
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.partition import Partition

logger = logging.getLogger("kafka.server.ReplicaAlterLogDirsManager")

#: The bytes of one step, in a worker thread: Kafka's `replica.fetch.max.bytes`.
STEP_BYTES = 1 << 20
#: The most bytes to copy on the event loop, in the turn of the swap.
LAST_STEP_BYTES = 16 << 10
#: Kafka's `replica.fetch.backoff.ms`: the pause after a failure.
RETRY_MS = 1_000
#: The longest pause of a throttled mover, because the rate may change.
LONGEST_PAUSE_MS = 1_000


class HostedReplicas(Protocol):
    """The partitions of this node, led here or not."""

    def hosted(self, topic: str, partition: int) -> Partition | None:
        """The partition, if its log is here."""
        ...

    def why_not_hosted(self, topic: str, partition: int) -> ErrorCode:
        """The error for a partition that `hosted` does not return."""
        ...


class Places(Protocol):
    """Reports the log directories of replicas to the controller."""

    async def assign(self, log: PartitionLog, log_dir: LogDir) -> ErrorCode:
        """Report `log_dir` as the new directory of a log; return the controller's answer."""
        ...

    def report_places(self) -> None:
        """Report the replicas whose directories the controller does not know."""
        ...


class CopyThrottle:
    """Limits the average copying rate: a mover that was too fast pauses."""

    def __init__(self, now_ms: int) -> None:
        self._debt_bytes = 0.0
        self._at_ms = now_ms

    def count(self, copied: int) -> None:
        """Note that `copied` bytes were copied."""
        self._debt_bytes += copied

    def pause_ms(self, bytes_per_second: int, now_ms: int) -> int:
        """The milliseconds to wait before copying more, rounded down."""
        elapsed_ms, self._at_ms = max(0, now_ms - self._at_ms), now_ms
        self._debt_bytes = max(0.0, self._debt_bytes - bytes_per_second * elapsed_ms / 1000)
        if self._debt_bytes * 1000 > bytes_per_second * LONGEST_PAUSE_MS:
            return LONGEST_PAUSE_MS
        return int(self._debt_bytes * 1000 / bytes_per_second) if self._debt_bytes else 0


class LogDirMoves:
    """All moves of a node. Event loop only.

    At most `threads` moves run at a time. `bytes_per_second` is called before each step.
    """

    def __init__(
        self,
        logs: LogManager,
        replicas: HostedReplicas,
        places: Places,
        clock: Clock,
        *,
        threads: int,
        bytes_per_second: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._places = places
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._slots = asyncio.Semaphore(threads)
        self._throttle = CopyThrottle(clock.monotonic_ms())
        self._movers: set[asyncio.Task[None]] = set()
        #: Lets only one request at a time change the moves.
        self._altering = asyncio.Lock()
        self._waits: set[Wait] = set()
        self._is_closing = False

    @property
    def under_way(self) -> int:
        """The number of moves, including those that wait for their turn."""
        return len(self._movers)

    def resume(self) -> None:
        """Continue the moves that the last stop interrupted."""
        for move in self._logs.moves.under_way.values():
            self._start(move)

    async def stop(self) -> None:
        """Interrupt every move; nothing is copied when this returns."""
        self._is_closing = True
        for wait in self._waits:
            wait.end()
        if self._movers:
            await asyncio.wait(list(self._movers))

    async def alter(self, topic: str, partition: int, path: str) -> ErrorCode:
        """Move a partition to the log directory `path`; a partition not held here yet will be created there.

        The checks and their order are Apache Kafka's.
        """
        async with self._altering:
            try:
                await self._alter(topic, partition, path)
            except KafkaError as error:
                logger.warning("Unable to alter log dirs for %s-%d: %s", topic, partition, error.message)
                # This request has the older error in the place of NOT_LEADER_OR_FOLLOWER.
                if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    return ErrorCode.REPLICA_NOT_AVAILABLE
                return error.code
            return ErrorCode.NONE

    async def _alter(self, topic: str, partition: int, path: str) -> None:
        logs = self._logs
        try:
            future_folder(topic, partition, "0" * 32)
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from None
        log_dir = next((one for one in logs.dirs.of_partitions if one.path == path), None)
        if log_dir is None:
            text = f"Log dir {path} is not found in the config."
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, text)
        if not log_dir.is_online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        if log_dir.is_cordoned:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
        hosted = self._replicas.hosted(topic, partition)
        reason = self._replicas.why_not_hosted(topic, partition) if hosted is None else ErrorCode.NONE
        if reason is ErrorCode.KAFKA_STORAGE_ERROR or (hosted is not None and hosted.log.offline is not None):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {topic}-{partition} is offline")
        if hosted is None:
            logs.prefer(topic, partition, log_dir)
            raise KafkaError(reason)
        move = logs.moves.under_way.get((topic, partition))
        if move is not None:
            if logs.dir_of(move.future) is log_dir:
                return
            logs.moves.cancel(topic, partition)
        if logs.dir_of(hosted.log) is not log_dir:
            self._start(await logs.moves.begin(topic, partition, log_dir))

    def _start(self, move: LogMove) -> None:
        task = asyncio.get_running_loop().create_task(self._move(move))
        self._movers.add(task)
        task.add_done_callback(self._movers.discard)

    async def _move(self, move: LogMove) -> None:
        async with self._slots:
            logger.info("Moving %s from %s to %s", move.name, move.source.directory, move.future.directory)
            try:
                await self._copy_and_swap(move)
            except Exception:
                logger.exception("The move of %s failed; the next start takes it up again", move.name)
        if not self._is_closing:
            self._places.report_places()

    async def _copy_and_swap(self, move: LogMove) -> None:
        logs, is_assigned, has_failed = self._logs, False, False
        while self._goes_on(move):
            try:
                pause_ms = self._throttle.pause_ms(self._bytes_per_second(), self._clock.monotonic_ms())
                if pause_ms or not move.may_copy:
                    await self._sleep(pause_ms or RETRY_MS)
                    continue
                copied = move.copied_bytes
                is_level = move.close_gap(LAST_STEP_BYTES)
                if not is_level:
                    await logs.moves.carry_on(move, STEP_BYTES)
                self._throttle.count(move.copied_bytes - copied)
                if not is_level:
                    continue
                if is_assigned:
                    self._swap(move)
                    await logs.moves.clear_up(move)
                    return
                await logs.moves.flush(move)
                error = await self._places.assign(move.future, logs.dir_of(move.future))
                if error is not ErrorCode.NONE:
                    raise KafkaError(error)
                is_assigned = True
            except KafkaError as error:
                if error.code is ErrorCode.CORRUPT_MESSAGE:
                    logger.error("%s stays where it is: %s", move.name, error.message)
                    logs.moves.cancel(move.source.topic, move.source.partition)
                    return
                if not self._goes_on(move):
                    return
                if not has_failed:
                    logger.warning("The move of %s waits: %s", move.name, error.message)
                has_failed = True
                await self._sleep(RETRY_MS)

    def _goes_on(self, move: LogMove) -> bool:
        """Whether the move was not cancelled, and both logs are in service."""
        key = move.source.topic, move.source.partition
        is_wanted = not self._is_closing and self._logs.moves.under_way.get(key) is move
        return is_wanted and move.source.offline is None and move.future.offline is None

    def _swap(self, move: LogMove) -> None:
        hosted = self._replicas.hosted(move.source.topic, move.source.partition)
        self._logs.moves.swap(move)
        if hosted is not None:
            hosted.move_to(move.future)

    async def _sleep(self, duration_ms: int) -> None:
        """Wait; `stop` ends the wait."""
        wait = Wait()
        self._waits.add(wait)
        try:
            await wait.until(self._clock.call_at, self._clock.monotonic_ms() + duration_ms)
        finally:
            self._waits.discard(wait)
