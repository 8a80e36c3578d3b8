"""Disks that fail or are full, and descriptors that run out.

A directory whose disk fails goes out of service: appends to its logs get KAFKA_STORAGE_ERROR, the others go
on. A full disk is no failure: see `full_disks.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.environment import DiskEvents, Environment, FileJobs
from pykafka_broker.log.disk.file_work import FileWork
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.disk.full_disks import FullDisks
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.log.LogManager")

#: The interval at which the logs of a directory repeat a warning that concerns many of them at once.
WARNING_INTERVAL_MS = 60_000


class DirectoryFailures:
    """Handles every disk error; the environments that it makes for the logs of each directory report them."""

    def __init__(
        self,
        files: FileSystem,
        registry: LogRegistry,
        work: FileWork,
        *,
        monotonic_ms: Callable[[], int],
        on_failure: Callable[[LogDir], None],
    ) -> None:
        self._files = files
        self._registry = registry
        self._work = work
        #: Called on the event loop when a directory has gone out of service.
        self._on_failure = on_failure
        #: Directories that refuse writes for now.
        self.full_disks = FullDisks(
            files, run_later=work.run_later, monotonic_ms=monotonic_ms, on_failure=self.failed
        )
        self._repeated_lines = RepeatedLines(logger, monotonic_ms, WARNING_INTERVAL_MS)
        self._loop: asyncio.AbstractEventLoop | None = None

    def tell_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Report failures on this event loop from now on; until then, a start notices them itself."""
        self._loop = loop

    def environment(self, log_dir: LogDir) -> Environment:
        """The services for the logs of a directory."""
        return Environment(
            self._files,
            FileJobs(
                run_later=partial(self._work.run_later, log_dir.path),
                run_in_turn=partial(self._work.run_in_turn, log_dir.path),
                bury=partial(self._work.bury, log_dir.path),
            ),
            DiskEvents(
                on_failure=partial(self.failed, log_dir),
                on_exhausted=self._descriptors_exhausted,
                on_write_failed=partial(self.full_disks.write_failed, log_dir),
                warn=partial(self._warn, log_dir.path),
            ),
        )

    def failed(self, log_dir: LogDir, error: OSError) -> None:
        """Take a directory out of service. Any thread."""
        if log_dir.error is not None:
            return
        log_dir.error = error
        logger.error("Stopping serving logs in dir %s: %s", log_dir.path, error)
        for log in self._registry.in_dir(log_dir):
            log.state.offline = error
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_failure, log_dir)

    def _descriptors_exhausted(self) -> None:
        """Too many files are open: close those of all logs; each opens again at its next use. Any thread."""
        self._warn(
            "", "open files", "Too many open files: closing those of all logs; raise the limit (ulimit -n)"
        )
        self.release_files()

    def release_files(self) -> None:
        """Close the files of all logs; each opens again at its next use. Any thread."""
        for log in self._registry.all():
            log.reader.release_files()

    def _warn(self, subject: str, kind: str, text: str) -> None:
        """Log a warning, unless there was one of its kind just now. Any thread."""
        self._repeated_lines.log(logging.WARNING, kind, subject, text)
