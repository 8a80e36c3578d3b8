"""The environment of a log, given by its owner: files, worker threads, and callbacks for failing disks."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable

from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS
from pykafka_broker.system.histogram import UNIT_SHIFT, new_histogram, record
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")

#: Errors that may pass by themselves: disk full, over quota, mounted read-only for now, out of descriptors
#: or memory.
PASSING_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM}) | EXHAUSTED_ERRORS


#: Unsynced bytes per log: what a stop has to sync, and a recovery after a crash has to scan.
WRITE_BEHIND_BYTES = 64 << 20


def _at_once(job: Callable[[], object], delay_ms: int = 0) -> None:
    job()


class FileJobs(NamedTuple):
    """Runs file work that no append waits for; the defaults run it at once, for tests and tools."""

    #: Run a job that may wait for the disk, in a worker thread, soon.
    run_later: Callable[[Callable[[], object]], None] = _at_once
    #: The same for jobs that keep the disk busy: one of them at a time.
    run_in_turn: Callable[[Callable[[], object]], None] = _at_once
    #: Run a removal in a worker thread after this many milliseconds (`file.delete.delay.ms`).
    bury: Callable[[Callable[[], object], int], None] = _at_once


def _ignore(*_: object) -> None: ...


def _warn(_kind: str, text: str) -> None:
    logger.warning("%s", text)


class DiskEvents(NamedTuple):
    """Callbacks that tell the owner about a disk; called from any thread."""

    #: The directory must go out of service.
    on_failure: Callable[[OSError], object] = _ignore
    #: Too many files are open: close some.
    on_exhausted: Callable[[], object] = _ignore
    #: A write was refused, perhaps only for now.
    on_write_failed: Callable[[OSError], object] = _ignore
    #: Log a warning, given its kind and text, that many logs may have at the same time.
    warn: Callable[[str, str], object] = _warn


AT_ONCE = FileJobs()
UNHEARD = DiskEvents()


class FlushTimes:
    """How often segments were synced, and a histogram of how long each sync took. Any thread may record."""

    __slots__ = ("_lock", "count", "histogram")

    def __init__(self) -> None:
        self.count = 0
        self.histogram = new_histogram()
        #: Several threads sync at a time; beside a sync the lock costs nothing.
        self._lock = threading.Lock()

    def record(self, duration_ns: int) -> None:
        """A segment has been synced."""
        with self._lock:
            self.count += 1
            record(self.histogram, duration_ns >> UNIT_SHIFT)


class Environment:
    """The owner's services."""

    __slots__ = (
        "_events",
        "bury",
        "files",
        "flushes",
        "run_in_turn",
        "run_later",
        "warn",
        "write_behind_bytes",
    )

    def __init__(
        self,
        files: FileSystem,
        jobs: FileJobs = AT_ONCE,
        events: DiskEvents = UNHEARD,
        *,
        write_behind_bytes: int = WRITE_BEHIND_BYTES,
    ) -> None:
        self.files = files
        self.flushes = FlushTimes()
        # As in `FileJobs` and `DiskEvents`.
        self.run_later, self.run_in_turn, self.bury = jobs
        self._events = events
        self.warn = events.warn
        #: The unsynced bytes of a segment above which it is synced in the background.
        self.write_behind_bytes = write_behind_bytes

    def write_failed(self, error: OSError) -> None:
        """Report a refused write. The directory goes out of service, unless the error is one of
        `PASSING_ERRORS`. Any thread.
        """
        self.open_failed(error)
        self._events.on_write_failed(error)
        if error.errno not in PASSING_ERRORS:
            self._events.on_failure(error)

    def open_failed(self, error: OSError) -> None:
        """Report a failed open: if too many files are open, the owner can close some. Any thread."""
        if error.errno in EXHAUSTED_ERRORS:
            self._events.on_exhausted()

    def sync_failed(self, error: OSError) -> None:
        """Report a failed sync: the disk lost data, which no retry mends, so the directory goes out of
        service. If only descriptors ran out, no data is lost.
        """
        if error.errno in EXHAUSTED_ERRORS:
            self.open_failed(error)
        else:
            self._events.on_failure(error)
