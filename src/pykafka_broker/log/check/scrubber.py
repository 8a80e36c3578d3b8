"""Scrubbing: closed segments are verified from time to time, so that damage on a disk is found before a
consumer meets it.

A round begins a minute after a start, with the closed segments that this process has not verified yet, and
then once per `log.scrub.interval.ms`, with all of them. A process of its own (scrub_process.py) reads them,
at a limited rate and without changing the content of the page cache. A segment in which it finds something
odd is scanned here once more: that scan decides, and fences off damaged ranges.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

from pykafka_broker.log.disk.checkpoints import EpochEntry
from pykafka_broker.log.disk.files import File, FileSystem, join
from pykafka_broker.log.disk.names import LOG_SUFFIX, offset_file
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.segment.batch_scan import BatchScan, verified_end
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.log.LogManager")

#: The first round begins this long after a start; sooner if the interval is shorter.
FIRST_ROUND_MS = 60_000


class ScrubSettings(NamedTuple):
    """The `log.scrub.*` values, which are ours; may be replaced at any time."""

    #: The time between the beginnings of two rounds; -1: there are no rounds.
    interval_ms: int = 7 * 24 * 3_600_000
    #: A slow disk reads five times as much. A terabyte takes nine hours.
    bytes_per_second: int = 32 << 20


DEFAULT_SCRUB_SETTINGS = ScrubSettings()


class ScrubAborted(Exception):
    """The broker is stopping."""


class ScrubJob(NamedTuple):
    """Closed segments of one log, (base offset, size in bytes, base offset of the next) each, and the leader
    epochs that they must agree with.
    """

    directory: str
    segments: Sequence[tuple[int, int, int]]
    epochs: Sequence[EpochEntry]


class Scrubbed(NamedTuple):
    """Base offsets of the segments that are sound, and of those in which something is odd."""

    sound: Sequence[int]
    odd: Sequence[int]


class ScrubWorker(Protocol):
    """Reads the segments: in the thread that calls, or in a process."""

    def scrub(self, job: ScrubJob, bytes_per_second: float) -> Scrubbed:
        """Verify all segments of a job. Blocking; ScrubAborted if `close` is called meanwhile."""

    def close(self) -> None: ...


def scrub(files: FileSystem, job: ScrubJob, meter: Callable[[int], object]) -> Scrubbed:
    """Verify the segments of a job; `meter` is told the bytes of each read, and may wait. Segments that no
    longer exist, or cannot be read, are left out. Blocking.
    """
    sound: list[int] = []
    odd: list[int] = []
    epoch_of = LeaderEpochs(job.epochs).epoch_for_offset
    for base_offset, size, next_base_offset in job.segments:
        try:
            file = files.open(join(job.directory, offset_file(base_offset, LOG_SUFFIX)), writable=False)
            read = partial(_read, file, meter)
            found = verified_end(
                read,
                0,
                size,
                size,
                next_offset=base_offset,
                max_offset=base_offset + MAX_RELATIVE_OFFSET,
                epoch_of=epoch_of,
                following_offset=next_base_offset,
            )
            if found is None:  # odd, or once compacted
                scan = BatchScan(
                    file.pread, size, base_offset, epoch_of=epoch_of, following_offset=next_base_offset
                )
                for _ in scan:
                    pass
                found = None if scan.damages else scan.valid_end
        except OSError as error:
            logger.debug("segment %d in %s is not scrubbed: %s", base_offset, job.directory, error)
            continue
        (sound if found == size else odd).append(base_offset)
    return Scrubbed(sound, odd)


def _read(file: File, meter: Callable[[int], object], size: int, position: int) -> Buffer:
    """As `pread`, but the page cache does not keep bytes that it did not have before."""
    data: Buffer | None = file.pread_cached(size, position)
    if data is None:
        data = file.pread(size, position)
        file.forget(size, position)
    meter(size)
    return data


class ThreadScrubber:
    """Reads in the thread that calls: for files in memory."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._is_closed = False

    def scrub(self, job: ScrubJob, bytes_per_second: float) -> Scrubbed:
        return scrub(self._files, job, self._meter)

    def _meter(self, count: int) -> None:
        if self._is_closed:
            raise ScrubAborted

    def close(self) -> None:
        self._is_closed = True


class Scrubber:
    """Begins the rounds, and applies their findings. Event loop; the work is done in threads."""

    def __init__(
        self,
        logs: Callable[[], Iterable[PartitionLog]],
        settings: ScrubSettings = DEFAULT_SCRUB_SETTINGS,
        *,
        run_blocking: RunBlocking,
        run_scrubbing: RunBlocking,
        new_worker: Callable[[], ScrubWorker],
    ) -> None:
        self._logs = logs
        self.settings = settings
        self._run_blocking = run_blocking
        #: For work that takes hours.
        self._run_scrubbing = run_scrubbing
        self._new_worker = new_worker
        self._worker: ScrubWorker | None = None
        self._round: asyncio.Task[None] | None = None
        self._rounds = 0
        #: When the last round began; before the first one, when `tick` was first called.
        self._since_ms: int | None = None
        self._is_closed = False

    def tick(self, now_ms: int) -> None:
        """Begin a round if one is due."""
        if self._since_ms is None:
            self._since_ms = now_ms
        interval_ms = self.settings.interval_ms
        if interval_ms < 0 or self._round is not None or self._is_closed:
            return
        if now_ms - self._since_ms < (interval_ms if self._rounds else min(FIRST_ROUND_MS, interval_ms)):
            return
        self._since_ms = now_ms
        self._round = asyncio.get_running_loop().create_task(self._go_round())

    async def _go_round(self) -> None:
        only_unchecked = self._rounds == 0
        self._rounds += 1
        segments = damaged = 0
        try:
            for log in list(self._logs()):
                job = job_for(log, only_unchecked=only_unchecked)
                if job is None:
                    continue
                self._worker = self._worker or self._new_worker()
                try:
                    scrubbed = await self._run_scrubbing(
                        partial(self._worker.scrub, job, self.settings.bytes_per_second)
                    )
                    await self._run_blocking(partial(apply_findings, log, job, scrubbed))
                except ScrubAborted:
                    raise
                except OSError as error:
                    logger.warning("%s is not scrubbed: %s", log.name, error)
                    continue
                except Exception:  # go on with the other logs
                    logger.exception("%s is not scrubbed", log.name)
                    continue
                segments += len(job.segments)
                damaged += len(scrubbed.odd)
                if self._is_closed:
                    return
            if segments:
                logger.info("Scrubbed %d closed segments, %d of them damaged", segments, damaged)
        except ScrubAborted:
            pass
        except Exception:
            logger.exception("Scrubbing failed; it goes on with the next round")
        finally:
            worker, self._worker, self._round = self._worker, None, None
            if worker is not None:
                worker.close()

    async def close(self) -> None:
        """End the round under way, and begin none any more."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.close()
        if self._round is not None:
            await self._round


def job_for(log: PartitionLog, *, only_unchecked: bool) -> ScrubJob | None:
    """The closed segments of a log without known damage; None if there are none."""
    if log.closed or log.offline is not None:
        return None
    segments = [
        (segment.base_offset, segment.size, following.base_offset)
        for segment, following in pairwise(log.state.segments)
        if not segment.trust.damages and (segment.trust.unverified_end or not only_unchecked)
    ]
    if not segments:
        return None
    return ScrubJob(log.directory, segments, log.state.epochs.entries)


def apply_findings(log: PartitionLog, job: ScrubJob, scrubbed: Scrubbed) -> None:
    """Trust the sound segments, scan the odd ones. Worker-safe."""
    sizes = {base_offset: size for base_offset, size, _ in job.segments}
    for segment in log.state.segments[:-1]:
        if sizes.get(segment.base_offset) != segment.size or log.closed:
            continue  # compacted meanwhile, or not asked for
        if segment.base_offset in scrubbed.sound:
            segment.trust.note_all_verified()
        elif segment.base_offset in scrubbed.odd:
            segment.trust.unverified_end = segment.size
            try:
                log.reader.checks.check_again(segment)
            except FileNotFoundError:
                if segment in log.state.segments:  # else it was compacted, or deleted, just now
                    raise
