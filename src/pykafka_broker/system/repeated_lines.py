"""Log lines that something causes again and again: one at once, then one per interval with a count."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

INTERVAL_MS = 10_000
#: Subjects remembered at a time; when more misbehave at once, the oldest is forgotten.
MAX_SUBJECTS = 1_000


class RepeatedLines:
    """Writes a line per kind and subject (a peer, most often) at most once per interval. Any thread."""

    def __init__(
        self, logger: logging.Logger, now_ms: Callable[[], int], interval_ms: int = INTERVAL_MS
    ) -> None:
        self._logger = logger
        self._now_ms = now_ms
        self._interval_ms = interval_ms
        #: When a subject's line was last written, and how many were left out since.
        self._written: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def is_recent(self, kind: str, subject: str) -> bool:
        """Whether a line of the kind was written just now, so that another would only be counted."""
        with self._lock:
            written_ms, _ = self._written.get((kind, subject), (None, 0))
            return written_ms is not None and 0 <= self._now_ms() - written_ms < self._interval_ms

    def log(self, level: int, kind: str, subject: str, message: str, error: Exception | None = None) -> None:
        """Write `message`, and the traceback of `error`, unless a line of the kind was written just now."""
        key = (kind, subject)
        now_ms = self._now_ms()
        with self._lock:
            written_ms, left_out = self._written.pop(key, (None, 0))
            # A clock that was set back begins a new interval.
            if written_ms is not None and 0 <= now_ms - written_ms < self._interval_ms:
                self._written[key] = (written_ms, left_out + 1)
                return
            if len(self._written) >= MAX_SUBJECTS:
                del self._written[next(iter(self._written))]
            self._written[key] = (now_ms, 0)
        again = f" ({left_out} more of these since the last such line)" if left_out else ""
        self._logger.log(level, "%s%s", message, again, exc_info=error)
