"""The background cleaner: decides when and which log is cleaned, in how many threads, and writes the
checkpoint.

It looks for a dirty log after each cleaned one, and every `log.cleaner.backoff.ms` if it found none. A log
that cannot be cleaned (a batch is damaged) gets one log line and is not tried again until the next start.
Retention skips a log that is being cleaned. As in Kafka, each round ends with retention of the compacted
logs, so `compact,delete` topics need not wait for `log.retention.check.interval.ms`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol

from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.partition.cleaning_job import CleanedSegment, CleaningAborted, DamagedSegment, Job
from pykafka_broker.log.partition.dirty import Dirt, filthiest
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.retention import Expired
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.log.LogCleaner")


class CleanerSettings(NamedTuple):
    """The `log.cleaner.*` values; sizes are for all threads together."""

    enable: bool = True
    threads: int = 1
    dedupe_buffer_bytes: int = 128 << 20
    io_buffer_bytes: int = 512 << 10
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000


class CleaningWorker(Protocol):
    """Reads and rewrites the records: in the thread that calls, or in a process."""

    def clean(self, job: Job, bytes_per_second: float, on_group: Callable[[CleanedSegment], None]) -> int: ...

    def close(self) -> None: ...


class ThreadWorker:
    """Cleans in the thread that calls: for files in memory, and for tools."""

    def __init__(
        self, files: FileSystem, *, now_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._files = files
        self._now_s = now_s
        self._sleep = sleep
        self._is_closed = False

    def clean(self, job: Job, bytes_per_second: float, on_group: Callable[[CleanedSegment], None]) -> int:
        from pykafka_broker.log.cleaner.work import clean
        from pykafka_broker.log.disk.throttle import Throttle  # no start needs what goes through records

        throttle = Throttle(bytes_per_second, now_s=self._now_s, sleep=self._sleep)

        def meter(count: int) -> None:
            if self._is_closed:
                raise CleaningAborted
            throttle.count(count)

        return clean(self._files, job, meter, on_group)

    def close(self) -> None:
        self._is_closed = True


class LogCleaner:
    """Cleans the dirty logs among `logs()`. Event loop; the work is done in threads."""

    def __init__(
        self,
        logs: Callable[[], Iterable[PartitionLog]],
        settings: CleanerSettings,
        *,
        run_blocking: RunBlocking,
        run_cleaning: RunBlocking,
        new_worker: Callable[[], CleaningWorker],
        clock: Clock,
        checkpoint: Callable[[], Awaitable[None]],
    ) -> None:
        self.settings = settings
        self._logs = logs
        self._run_blocking = run_blocking
        self._run_cleaning = run_cleaning
        self._new_worker = new_worker
        self._clock = clock
        self._checkpoint = checkpoint
        self._rounds: set[asyncio.Task[None]] = set()
        self._workers: set[CleaningWorker] = set()
        self._choosing = asyncio.Lock()
        self._uncleanable: set[PartitionLog] = set()
        #: Folders in which a worker writes. A topic may be deleted and created again before its worker ends.
        self._busy_folders: set[str] = set()
        self._next_look_ms = 0
        self._is_closed = False
        #: When it last looked for a dirty log (monotonic), and the `ratio` of the dirtiest then.
        self.looked_ms = clock.monotonic_ms()
        self.dirtiest = 0.0
        #: How long the last cleaning of a log took.
        self.last_cleaning_ms = 0

    @property
    def uncleanable(self) -> list[PartitionLog]:
        """The logs that are not cleaned any more until the next start."""
        return list(self._uncleanable)

    @property
    def is_at_work(self) -> bool:
        """Whether a log is cleaned, or looked for, right now."""
        return bool(self._rounds)

    def tick(self, now_ms: int) -> None:
        """Begin a round if one is due at `now_ms` (monotonic)."""
        if now_ms < self._next_look_ms or self._is_closed or not self.settings.enable:
            return
        self._next_look_ms = now_ms + self.settings.backoff_ms
        while len(self._rounds) < self.settings.threads:
            task = asyncio.get_running_loop().create_task(self._round())
            self._rounds.add(task)
            task.add_done_callback(self._rounds.discard)

    async def close(self) -> None:
        """Stop every round under way; nothing is cleaned when this returns."""
        self._is_closed = True
        for worker in tuple(self._workers):
            worker.close()
        if self._rounds:
            await asyncio.wait(list(self._rounds))

    async def _round(self) -> None:
        """Clean one log after the other until none is dirty enough."""
        begun: list[CleaningWorker] = []

        def worker() -> CleaningWorker:
            """The worker of this round, made when there is a log to clean."""
            if self._is_closed:
                raise CleaningAborted
            if not begun:
                begun.append(self._new_worker())
                self._workers.add(begun[0])
            return begun[0]

        try:
            while not self._is_closed and (found := await self._choose()) is not None:
                if not await self._clean(worker, *found):
                    break  # try again later: there may be room then
            await self._apply_retention()
        except Exception:
            logger.exception("The log cleaner failed; it tries again")
        finally:
            for each in begun:
                self._workers.discard(each)
                each.close()
            self._next_look_ms = self._clock.monotonic_ms() + self.settings.backoff_ms

    async def _choose(self) -> tuple[PartitionLog, Dirt] | None:
        """The dirtiest log, marked as being cleaned."""
        async with self._choosing:
            logs = [log for log in self._logs() if log.state.config.is_compacted]
            self._uncleanable.intersection_update(logs)
            logs = [log for log in logs if log not in self._uncleanable and self._may_begin(log)]
            now_ms = self._clock.now_ms()
            self.looked_ms = self._clock.monotonic_ms()
            found: tuple[PartitionLog, Dirt] | None = await self._run_blocking(
                lambda: self._filthiest(logs, now_ms)
            )
            if found is None or not self._may_begin(found[0]):
                return None
            found[0].compaction.is_under_way = True
            self._busy_folders.add(found[0].directory)
            return found

    def _may_begin(self, log: PartitionLog) -> bool:
        return log.compaction.may_begin and log.directory not in self._busy_folders

    def _filthiest(self, logs: Iterable[PartitionLog], now_ms: int) -> tuple[PartitionLog, Dirt] | None:
        """Worker thread."""
        candidates = list(self._candidates(logs, now_ms))
        self.dirtiest = max((dirt.ratio for _, dirt, _ in candidates), default=0.0)
        return filthiest(candidates)

    def _candidates(
        self, logs: Iterable[PartitionLog], now_ms: int
    ) -> Iterable[tuple[PartitionLog, Dirt, float]]:
        """Worker thread."""
        for log in logs:
            try:
                yield log, log.compaction.dirt(now_ms), log.state.config.min_cleanable_dirty_ratio
            except (OSError, KafkaError) as error:
                self._give_up(log, error)

    async def _clean(self, worker: Callable[[], CleaningWorker], log: PartitionLog, dirt: Dirt) -> bool:
        """Clean one log; False if that was cut short."""
        settings = self.settings
        loop = asyncio.get_running_loop()

        def on_group(cleaned: CleanedSegment) -> None:
            log.compaction.swap_in(cleaned)
            loop.call_soon_threadsafe(log.compaction.adopt)

        is_done = False
        folder = log.directory
        started_ms = self._clock.monotonic_ms()
        before = log.state.size_bytes

        try:
            await self._run_blocking(log.flusher.flush_closed)
            job = log.compaction.job(
                dirt,
                self._clock.now_ms(),
                key_map_bytes=settings.dedupe_buffer_bytes // settings.threads,
                key_map_load=settings.io_buffer_load_factor,
                io_buffer_bytes=settings.io_buffer_bytes // settings.threads // 2,
            )
            rate = settings.io_max_bytes_per_second
            clean = worker().clean
            end_offset = await self._run_cleaning(lambda: clean(job, rate, on_group))
        except CleaningAborted:
            logger.debug("The cleaning of %s was aborted", log.name)
        except DamagedSegment as error:
            is_done = log.compaction.holds(job.segments)  # else it was truncated while it was read
            if is_done:
                self._give_up(log, error)
        except (OSError, KafkaError) as error:
            if not log.closed:
                logger.warning("%s could not be cleaned now: %s", log.name, error)
                if not isinstance(error, ChildProcessError):
                    log.compaction.failed(error)
        except Exception as error:  # else it would be chosen again and again
            logger.exception("%s could not be cleaned", log.name)
            self._give_up(log, error)
        else:
            is_done = True
            log.compaction.finish(end_offset)
            self.last_cleaning_ms = self._clock.monotonic_ms() - started_ms
            logger.info(
                "Cleaned %s from offset %d to %d in %d ms: %d bytes became %d",
                log.name,
                dirt.first_dirty_offset,
                end_offset,
                self.last_cleaning_ms,
                before,
                log.state.size_bytes,
            )
        finally:
            try:
                log.compaction.adopt()
                await self._run_blocking(log.compaction.remove_leftovers)
            finally:  # only now: another round uses the same file names
                log.compaction.is_under_way = False
                self._busy_folders.discard(folder)
        await self._checkpoint()
        return is_done

    def _give_up(self, log: PartitionLog, error: Exception) -> None:
        logger.warning("%s is not cleaned any more until the next start: %s", log.name, error)
        self._uncleanable.add(log)

    async def _apply_retention(self) -> None:
        now_ms = self._clock.now_ms()
        for log in list(self._logs()):
            if log.state.config.is_compacted and log.offline is None:
                try:
                    expired: Expired = await self._run_blocking(partial(log.trimmer.expired, now_ms))
                    if expired.segments and not log.closed:
                        log.trimmer.apply_retention(now_ms)
                except (OSError, KafkaError) as error:
                    logger.error("%s: retention failed: %s", log.name, error)
