"""Repeated log lines: one at once, then one per interval with a count, and a limited number of each kind,
because clients choose many of the subjects.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_broker.system.log_fields import about

if TYPE_CHECKING:
    from pykafka_broker.system.log_fields import Described

INTERVAL_MS = 10_000
#: The most lines of one kind in an interval.
MOST_LINES = 100
#: The most subjects remembered at a time; then the oldest is forgotten.
MAX_SUBJECTS = 1_000
#: Subjects are compared by this many characters, because a peer may have chosen a very long one.
MOST_SUBJECT_CHARACTERS = 200


class _Room:
    """An interval of one kind: its beginning, its number of lines, and the number of lines left out."""

    __slots__ = ("began_ms", "left_out", "lines")

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.lines = self.left_out = 0


class RepeatedLines:
    """Writes a line per kind and subject (usually a peer) at most once per interval. Any thread.

    Of one kind there are at most `most_lines` in an interval. If lines were left out, the next interval
    begins with the line `left_out` and their number. Kinds are few, and clients do not choose them, so many
    lines of one kind do not keep out lines of another.
    """

    def __init__(
        self,
        logger: logging.Logger,
        now_ms: Callable[[], int],
        interval_ms: int = INTERVAL_MS,
        *,
        most_lines: int = MOST_LINES,
        left_out: str = "%d more lines like the next one, about others, are not logged one by one",
    ) -> None:
        self._logger = logger
        self._now_ms = now_ms
        self._interval_ms = interval_ms
        self._most_lines = most_lines
        self._left_out_text = left_out
        #: By kind, the interval that counts up to `most_lines`.
        self._rooms: dict[str, _Room] = {}
        #: When a subject's line was last written, and how many were suppressed since.
        self._written: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def log(
        self,
        level: int,
        kind: str,
        subject: str,
        message: str | Callable[[], str],
        error: Exception | None = None,
        concerns: Described | None = None,
    ) -> bool:
        """Write `message`, and the traceback of `error`, unless the interval of kind and subject still runs.
        `concerns` has the line's other fields.

        A message that is a function is made only to be written. Returns whether it was written.
        """
        key = (kind, subject[:MOST_SUBJECT_CHARACTERS])
        now_ms = self._now_ms()
        no_room = 0
        with self._lock:
            written_ms, left_out = self._written.pop(key, (None, 0))
            # A clock that was set back begins a new interval.
            if written_ms is not None and 0 <= now_ms - written_ms < self._interval_ms:
                self._written[key] = (written_ms, left_out + 1)
                return False
            # Suppressed repetitions do not count towards `most_lines`.
            room = self._rooms.get(kind)
            if room is None or not 0 <= now_ms - room.began_ms < self._interval_ms:
                no_room = room.left_out if room is not None else 0
                room = self._rooms[kind] = _Room(now_ms)
            if room.lines >= self._most_lines:
                room.left_out += 1
                return False
            room.lines += 1
            if len(self._written) >= MAX_SUBJECTS:
                del self._written[next(iter(self._written))]
            self._written[key] = (now_ms, 0)
        if no_room:
            self._logger.log(level, self._left_out_text, no_room)
        again = f" ({left_out} more of these since the last such line)" if left_out else ""
        text = message if isinstance(message, str) else message()
        self._logger.log(level, "%s%s", text, again, exc_info=error, extra=about(concerns))
        return True
