"""Log lines that something causes again and again: one at once, then one per interval with a count, and of
each kind no more than a limit, for clients choose many of their subjects.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

INTERVAL_MS = 10_000
#: The most lines of one kind in an interval, whatever their subjects.
MOST_LINES = 100
#: Subjects remembered at a time; when more misbehave at once, the oldest is forgotten.
MAX_SUBJECTS = 1_000
#: So many characters of a subject tell it from others: a peer may have chosen it, and made it as long as a
#: request may be.
MOST_SUBJECT_CHARACTERS = 200


class _Room:
    """An interval of one kind: when it began, its lines, and those for which there was no room."""

    __slots__ = ("began_ms", "left_out", "lines")

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.lines = self.left_out = 0


class RepeatedLines:
    """Writes a line per kind and subject (a peer, most often) at most once per interval. Any thread.

    Of one kind there are no more than `most_lines` in an interval, whatever their subjects; its next interval
    begins with a line, `left_out`, that has the number of those for which there was no room. Kinds are few,
    and no client chooses them: who causes many lines of one kind keeps out none of another.
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
        #: By kind, its interval of `most_lines`.
        self._rooms: dict[str, _Room] = {}
        #: When a subject's line was last written, and how many were left out since.
        self._written: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def log(self, level: int, kind: str, subject: str, message: str, error: Exception | None = None) -> bool:
        """Write `message`, and the traceback of `error`, unless a line of the kind was written just now.

        Returns whether it was written.
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
            # One that repeats takes no room: it must not keep out what others cause.
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
        self._logger.log(level, "%s%s", message, again, exc_info=error)
        return True
