"""Values that a `LogManager` is given: settings, worker threads, and the workers of cleaner and scrubber."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.log.check.scrubber import DEFAULT_SCRUB_SETTINGS, ScrubSettings, ScrubWorker
from pykafka_broker.log.cleaner.cleaner import CleanerSettings, CleaningWorker
from pykafka_broker.log.config import LONG_MAX
from pykafka_broker.machine.threads import RunBlocking, RunOnDisk
from pykafka_broker.system.named_tuple import NamedTuple


class Intervals(NamedTuple):
    """The intervals of periodic work in milliseconds; Kafka's broker settings and defaults.

    Retention, flushes and the checkpoints that a recovery needs are due for the first time after
    `initial_delay_ms`.
    """

    initial_delay_ms: int = 30_000
    retention_check_ms: int = 300_000
    flush_check_ms: int = LONG_MAX
    recovery_point_checkpoint_ms: int = 60_000
    log_start_checkpoint_ms: int = 60_000
    high_watermark_checkpoint_ms: int = 5_000
    producer_expiration_check_ms: int = 600_000


DEFAULT_INTERVALS = Intervals()
DEFAULT_CLEANER_SETTINGS = CleanerSettings()


class LogSettings(NamedTuple):
    """The broker settings of all logs together."""

    #: May be replaced at any time: `LogManager.intervals`.
    intervals: Intervals = DEFAULT_INTERVALS
    #: May be replaced at any time: `LogCleaner.settings`.
    cleaner: CleanerSettings = DEFAULT_CLEANER_SETTINGS
    #: May be replaced at any time: `Scrubber.settings`.
    scrub: ScrubSettings = DEFAULT_SCRUB_SETTINGS
    #: `num.recovery.threads.per.data.dir`.
    recovery_threads: int = 2


DEFAULT_LOG_SETTINGS = LogSettings()


class LogThreads(NamedTuple):
    """Worker threads for everything that may wait for a disk."""

    #: In any thread.
    run_blocking: RunBlocking
    #: In a thread for the disk of a log directory.
    run_on_disk: RunOnDisk
    #: As `run_on_disk`, for work that producers and creators of topics wait for.
    run_awaited: RunOnDisk
    #: In a thread of its own, for work that takes hours.
    run_long: RunBlocking


class LogWorkers(NamedTuple):
    """Makes the workers that read records for hours; None: the calling thread does their work."""

    new_cleaner: Callable[[], CleaningWorker] | None = None
    new_scrubber: Callable[[], ScrubWorker] | None = None


WORKERS_IN_THREADS = LogWorkers()
