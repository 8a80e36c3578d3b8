"""Logs that move between the directories of one broker (KIP-113): begun, carried on, swapped, cleared up
after, and resumed by the next start. `future_log.py` is what one move does to the files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pykafka_broker.log.disk.directories import LogDir, LogDirError, LogDirs
from pykafka_broker.log.disk.files import FileSystem, directory_name, join, random_id
from pykafka_broker.log.disk.names import future_folder
from pykafka_broker.log.manager.directory_failures import DirectoryFailures
from pykafka_broker.log.manager.future_log import LogMove, is_copy_of, reach
from pykafka_broker.log.manager.log_folders import LogFolders, WantedLog
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.log.manager.settings import LogThreads
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey

logger = logging.getLogger("kafka.log.LogManager")


class LogMoves:
    """The moves of one broker's logs. Event loop only, except where said."""

    def __init__(
        self,
        files: FileSystem,
        dirs: LogDirs,
        registry: LogRegistry,
        folders: LogFolders,
        failures: DirectoryFailures,
        threads: LogThreads,
    ) -> None:
        self._files = files
        self._dirs = dirs
        self._registry = registry
        self._folders = folders
        self._failures = failures
        self._threads = threads

    @property
    def under_way(self) -> dict[PartitionKey, LogMove]:
        """By topic and partition."""
        return self._registry.moves

    # --- moves that a stop has interrupted ----------------------------------------------------------

    def better_of(self, one: PartitionLog, other: PartitionLog) -> PartitionLog:
        """The log to serve, of two that a crash in the last step of a move has left.

        Raises:
            LogDirError: the two have different histories, which no move leaves.
        """
        whole, copy = (one, other) if reach(one) >= reach(other) else (other, one)
        if not is_copy_of(copy, whole):
            raise LogDirError(f"{other.directory} and {one.directory} are the same partition.")
        logger.warning(
            "Of %s and %s the first reaches further: it is served", whole.directory, copy.directory
        )
        if any(segment.trust.damages for segment in whole.state.segments):
            self._folders.keep_as_stray(copy)
        else:
            self._folders.remove(copy)
        return whole

    def resume(self, future: PartitionLog) -> None:
        """Take up a move that the last stop has interrupted.

        Raises:
            LogDirError: there are two future logs of a partition, and they differ.
        """
        key = future.topic, future.partition
        source = self._registry.served.get(key)
        orphans = self._registry.orphans
        if source is not None and future.topic_id == source.topic_id and key not in self.under_way:
            logger.info("Going on to move %s to %s", source.directory, future.directory)
            self.under_way[key] = LogMove(source, future)
        elif source is not None:
            self._folders.remove(future)
        elif all(log_dir.is_online for log_dir in self._dirs.of_partitions):
            orphans[key] = self.better_of(orphans[key], future) if key in orphans else future
        else:
            logger.warning("%s waits for the log that it is filled from", future.directory)
            future.close()

    # --- moves ------------------------------------------------------------------------------------

    async def begin(self, topic: str, partition: int, log_dir: LogDir) -> LogMove:
        """Make the folder into which a log is copied.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR if the disk refuses, or if there is a directory out of service,
                in which the folder may be already.
        """
        source = self._registry.served[topic, partition]
        if not all(one.is_online for one in self._dirs.of_partitions):
            offline = ",".join(one.path for one in self._dirs.of_partitions if not one.is_online)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Can not create log for {source.name} because log directories {offline} are offline",
            )
        name = future_folder(topic, partition, random_id())
        wanted = WantedLog(topic, partition, source.topic_id, source.state.config)
        future = await self._threads.run_blocking(
            lambda: self._folders.make(wanted, log_dir, name, source.state.log_start_offset)
        )
        if self._registry.served.get((topic, partition)) is not source:  # deleted meanwhile
            self._folders.remove(future)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        move = self.under_way[topic, partition] = LogMove(source, future)
        return move

    def cancel(self, topic: str, partition: int) -> bool:
        """Give up a move, and remove the copy; return whether there was one."""
        move = self.under_way.pop((topic, partition), None)
        if move is None:
            return False
        move.source.compaction.resume()
        move.is_cancelled = True
        if not move.is_busy:
            self._folders.remove(move.future)
        return True

    def give_up_in(self, log_dir: LogDir) -> None:
        """Give up every move into a directory that went out of service; the copies stay where they are."""
        for key, move in list(self.under_way.items()):
            if directory_name(move.future.directory) == log_dir.path:
                move.source.compaction.resume()
                del self.under_way[key]

    async def carry_on(self, move: LogMove, max_bytes: int) -> None:
        """Bring the future log nearer to the source by one step.

        Raises:
            KafkaError: CORRUPT_MESSAGE if the source is damaged; a storage error of either disk.
        """
        offset = move.divergence()
        if offset is not None:
            await self._work_on(move, partial(move.truncate, offset))
        elif move.lag > 0:
            await self._work_on(
                move, partial(move.copy, move.plan(max_bytes), move.source.state.log_end_offset)
            )

    async def flush(self, move: LogMove) -> None:
        """Make the copied records durable, so that the swap has little left to do.

        Raises:
            KafkaError: a storage error.
        """
        await self._work_on(move, move.future.flusher.flush)

    async def _work_on(self, move: LogMove, job: Callable[[], object]) -> None:
        """Run a job on the future log's files in a thread; remove them after it if the move was cancelled."""
        move.is_busy = True
        try:
            await self._threads.run_on_disk(directory_name(move.future.directory), job)
        except OSError as error:
            log_dir = self._folders.dir_of(move.future)
            assert log_dir.environment is not None
            log_dir.environment.write_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        finally:
            move.is_busy = False
            if move.is_cancelled:
                self._folders.remove(move.future)

    def swap(self, move: LogMove) -> None:
        """Put the future log, which has all records of the source, in its place; `clear_up` must follow.

        Raises:
            KafkaError: the folder could not be renamed; the source stays the log.
        """
        source, future = move.source, move.future
        log_dir = self._folders.dir_of(future)
        assert log_dir.environment is not None
        try:
            future.take_over(source, join(log_dir.path, future.name))
        except OSError as error:
            log_dir.environment.write_failed(error)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot put {future.directory} in place: {error}"
            ) from error
        logger.info("%s is moved from %s to %s", future.name, source.directory, log_dir.path)
        self._registry.served[future.topic, future.partition] = future
        del self.under_way[future.topic, future.partition]

    async def clear_up(self, move: LogMove) -> None:
        """After `swap`: make it durable, then remove the folder the log was in.

        If the new place fails at once, the old folder is kept under another name: it may lack records that
        were acknowledged since, so it is not served.
        """
        source, future = move.source, move.future

        def make_durable() -> bool:
            try:
                for segment in source.state.segments:
                    segment.pin()  # plans that were made before the swap read on
            except OSError as error:
                logger.debug("%s: reads under way may have to be repeated: %s", source.name, error)
            try:
                future.flusher.flush()
                self._files.sync_directory(directory_name(future.directory))
            except KafkaError:
                return False
            except OSError as error:
                self._failures.failed(self._folders.dir_of(future), error)
                return False
            return True

        if await self._threads.run_blocking(make_durable):
            self._folders.remove(source)
            await self._threads.run_blocking(lambda: self._folders.leave(source.directory))
        else:
            self._folders.keep_as_stray(source)
