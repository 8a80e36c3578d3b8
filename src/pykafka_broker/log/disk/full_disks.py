"""Directories whose disk refuses writes: full, over quota, or mounted read-only for now.

The first write that a directory refuses leaves one line in the log. From then on the directory counts as
refusing until a trial succeeds, which leaves the second line. A trial writes 1 MiB and removes it again: free
space alone says nothing about quotas, inodes and read-only mounts. A trial waits until no write was refused
for `TRIAL_INTERVAL_MS`, so a disk that is full only for large batches does not fill the log with lines. If a
trial fails in another way, the disk has failed.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from functools import partial

from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import FileSystem, join, write_fully
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS

logger = logging.getLogger("kafka.log.LogManager")

#: Errors of a disk that refuses writes.
REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
#: The time without a refused write before a trial, and between two trials.
TRIAL_INTERVAL_MS = 10_000
#: About as much as Kafka's default `message.max.bytes`.
TRIAL_BYTES = 1 << 20
TRIAL_FILE = ".trial"


def _ignore() -> None:
    """Nothing has subscribed."""


class FullDisks:
    """Notices which directories refuse writes, and when they take them again."""

    def __init__(
        self,
        files: FileSystem,
        *,
        run_later: Callable[[str, Callable[[], object]], None],
        monotonic_ms: Callable[[], int],
        on_failure: Callable[[LogDir, OSError], object],
    ) -> None:
        self._files = files
        #: Called in any thread when a trial fails with an error of the disk that is no refusal.
        self._on_failure = on_failure
        #: Runs a job in a worker thread of a log directory.
        self._run_later = run_later
        self._monotonic_ms = monotonic_ms
        self._changed: Callable[[], object] = _ignore

    def subscribe(self, changed: Callable[[], object]) -> None:
        """Call `changed`, in any thread, when a directory begins to refuse writes, or takes them again."""
        self._changed = changed

    def write_failed(self, log_dir: LogDir, error: OSError) -> None:
        """A write to the directory has failed. Any thread."""
        if error.errno not in REFUSALS:
            return
        is_news = log_dir.refusal is None
        # Without its traceback, whose frames hold files that nothing else would keep open.
        log_dir.refusal = OSError(error.errno, error.strerror)
        log_dir.trial_due_ms = self._monotonic_ms() + TRIAL_INTERVAL_MS
        if is_news:
            self._run_later(log_dir.path, partial(self._tell_refusal, log_dir, error))
            self._changed()

    def try_again(self, log_dir: LogDir, now_ms: int) -> None:
        """Begin a trial in a directory that has refused writes, if one is due."""
        if log_dir.refusal is not None and log_dir.is_online and now_ms >= log_dir.trial_due_ms:
            log_dir.trial_due_ms = now_ms + TRIAL_INTERVAL_MS
            self._run_later(log_dir.path, partial(self._try, log_dir))

    def _tell_refusal(self, log_dir: LogDir, error: OSError) -> None:
        logger.warning(
            "%s takes no more records (%s); %s. Producers are refused until there is room",
            log_dir.path,
            error.strerror or error,
            self._room(log_dir),
        )

    def _try(self, log_dir: LogDir) -> None:
        path = join(log_dir.path, TRIAL_FILE)
        try:
            self._files.remove(path)
            file = self._files.open(path, create=True)
            try:
                write_fully(file, bytes(TRIAL_BYTES), 0)
            finally:
                file.close()
                self._files.remove(path)
        except OSError as error:
            logger.debug("%s still takes no more: %s", log_dir.path, error)
            if error.errno not in REFUSALS | EXHAUSTED_ERRORS:
                self._on_failure(log_dir, error)
            return
        log_dir.refusal = None
        logger.info("%s takes records again; %s", log_dir.path, self._room(log_dir))
        self._changed()

    def _room(self, log_dir: LogDir) -> str:
        try:
            total_bytes, free_bytes = self._files.space(log_dir.path)
        except OSError as error:
            return f"its free space is unknown ({error.strerror or error})"
        return f"{free_bytes} of {total_bytes} bytes are free"
