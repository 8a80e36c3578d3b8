"""Log lines that something causes again and again: one at once, then one per interval with a count; and of
lines whose subjects clients choose no more than a limit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

INTERVAL_MS = 10_000
#: Subjects remembered at a time; when more misbehave at once, the oldest is forgotten.
MAX_SUBJECTS = 1_000
#: So many characters of a subject tell it from others: a peer may have chosen it, and made it as long as a
#: request may be.
MOST_SUBJECT_CHARACTERS = 200


class RepeatedLines:
    """Writes a line per kind and subject (a peer, most often) at most once per interval. Any thread.

    With `most_lines` there are no more lines than that in an interval, whatever their subjects; the next
    interval begins with a line, `left_out`, that has the number of those for which there was no room.
    """

    def __init__(
        self,
        logger: logging.Logger,
        now_ms: Callable[[], int],
        interval_ms: int = INTERVAL_MS,
        *,
        most_lines: int | None = None,
        left_out: str = "%d more of these are not logged one by one",
    ) -> None:
        self._logger = logger
        self._now_ms = now_ms
        self._interval_ms = interval_ms
        self._most_lines = most_lines
        self._left_out_text = left_out
        #: When the interval of `most_lines` began, its lines, and those for which there was no room.
        self._began_ms = self._lines = self._left_out = 0
        #: When a subject's line was last written, and how many were left out since.
        self._written: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def log(self, level: int, kind: str, subject: str, message: str, error: Exception | None = None) -> None:
        """Write `message`, and the traceback of `error`, unless a line of the kind was written just now."""
        key = (kind, subject[:MOST_SUBJECT_CHARACTERS])
        now_ms = self._now_ms()
        no_room = 0
        with self._lock:
            written_ms, left_out = self._written.pop(key, (None, 0))
            # A clock that was set back begins a new interval.
            if written_ms is not None and 0 <= now_ms - written_ms < self._interval_ms:
                self._written[key] = (written_ms, left_out + 1)
                return
            # One that repeats takes no room: it must not keep out what others cause.
            if self._most_lines is not None:
                if not 0 <= now_ms - self._began_ms < self._interval_ms:
                    no_room = self._left_out
                    self._began_ms, self._lines, self._left_out = now_ms, 0, 0
                if self._lines >= self._most_lines:
                    self._left_out += 1
                    return
                self._lines += 1
            if len(self._written) >= MAX_SUBJECTS:
                del self._written[next(iter(self._written))]
            self._written[key] = (now_ms, 0)
        if no_room:
            self._logger.log(level, self._left_out_text, no_room)
        again = f" ({left_out} more of these since the last such line)" if left_out else ""
        self._logger.log(level, "%s%s", message, again, exc_info=error)
