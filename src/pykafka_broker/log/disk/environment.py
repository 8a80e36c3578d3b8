"""What a log needs from whoever owns it: files, worker threads, and an ear for failing disks."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable

from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS

logger = logging.getLogger(__name__)

#: Errors that may pass by themselves: disk full, over quota, mounted read-only for now, out of descriptors
#: or memory.
PASSING_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM}) | EXHAUSTED_ERRORS


#: A stop, and the recovery after a crash, take as long as there is left to sync, or to scan: this much a log.
WRITE_BEHIND_BYTES = 64 << 20


class Environment:
    """The owner's services; the defaults do everything at once, which suits tests and tools."""

    __slots__ = (
        "_on_exhausted",
        "_on_failure",
        "_on_write_failed",
        "bury",
        "files",
        "run_in_turn",
        "run_later",
        "warn",
        "write_behind_bytes",
    )

    def __init__(
        self,
        files: FileSystem,
        *,
        run_later: Callable[[Callable[[], object]], None] | None = None,
        run_in_turn: Callable[[Callable[[], object]], None] | None = None,
        bury: Callable[[Callable[[], object], int], None] | None = None,
        on_failure: Callable[[OSError], None] | None = None,
        on_exhausted: Callable[[], None] | None = None,
        on_write_failed: Callable[[OSError], None] | None = None,
        warn: Callable[[str, str], None] | None = None,
        write_behind_bytes: int = WRITE_BEHIND_BYTES,
    ) -> None:
        self.files = files
        #: Run a job that may wait for the disk, in a worker thread, soon.
        self.run_later = run_later or _at_once
        #: The same for jobs that keep the disk busy and nobody waits for: one of them at a time.
        self.run_in_turn = run_in_turn or self.run_later
        #: How much of a segment may be unsynced before it is synced in the background.
        self.write_behind_bytes = write_behind_bytes
        #: Run a removal in a worker thread after so many milliseconds (`file.delete.delay.ms`).
        self.bury = bury or _at_once
        #: Log a warning that many logs may have at the same time, given its kind and text. Any thread.
        self.warn = warn or _warn
        self._on_failure = on_failure
        self._on_exhausted = on_exhausted
        self._on_write_failed = on_write_failed

    def write_failed(self, error: OSError) -> None:
        """A write was refused. Unless that may pass by itself, the directory must go out of service. Any
        thread.
        """
        self.open_failed(error)
        if self._on_write_failed is not None:
            self._on_write_failed(error)
        if error.errno not in PASSING_ERRORS and self._on_failure is not None:
            self._on_failure(error)

    def open_failed(self, error: OSError) -> None:
        """A file could not be opened: if there are too many, the owner can close some. Any thread."""
        if error.errno in EXHAUSTED_ERRORS and self._on_exhausted is not None:
            self._on_exhausted()

    def sync_failed(self, error: OSError) -> None:
        """The disk lost what it had taken, which no retry can mend: the directory must go out of service."""
        if error.errno in EXHAUSTED_ERRORS:
            self.open_failed(error)
        elif self._on_failure is not None:
            self._on_failure(error)


def _at_once(job: Callable[[], object], delay_ms: int = 0) -> None:
    job()


def _warn(_kind: str, text: str) -> None:
    logger.warning("%s", text)
