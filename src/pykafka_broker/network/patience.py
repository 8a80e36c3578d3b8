"""The deadlines of a peer (to send the rest of a request, to read, to do anything) and ours to answer.

A sweep reports the progress of every connection here and learns which deadlines have passed. Times are those
of sweeps, and as precise as their interval.
"""

from __future__ import annotations

from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.unanswered import GRACE_MS
from pykafka_broker.system.repeated_lines import INTERVAL_MS

#: The deadline of an arriving request grows by one second for this many of its bytes.
SLOWEST_BYTES_PER_S = 16 * 1024

#: The next look at a request that has been logged: never.
_NEVER_MS = 1 << 63


class Patience:
    """The deadlines of one connection."""

    __slots__ = (
        "_limits",
        "_look_ms",
        "_served_before",
        "_waiting",
        "_waiting_since_ms",
        "active",
        "active_ms",
        "arriving_since_ms",
        "stalled_since_ms",
        "unread_bytes",
    )

    def __init__(self, limits: ConnectionLimits, now_ms: int) -> None:
        self._limits = limits
        #: Something moved since the last sweep.
        self.active = True
        #: When a sweep last saw something move.
        self.active_ms = now_ms
        #: Bytes that the peer had not read at the last sweep, and when it stopped reading (None: it reads).
        self.unread_bytes = 0
        self.stalled_since_ms: int | None = None
        #: When the incomplete request began to arrive (None: no request arrives, or this side has stopped
        #: reading it), and how many requests had been served then.
        self.arriving_since_ms: int | None = None
        self._served_before = 0
        #: The number on the connection of the oldest request without an answer, 0 without one; when a sweep
        #: first saw it wait, and when to look at it next.
        self._waiting = 0
        self._waiting_since_ms = self._look_ms = now_ms

    def swept(self, now_ms: int) -> None:
        """A sweep begins."""
        if self.active:
            self.active = False
            self.active_ms = now_ms

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing has moved for `idle_ms`; never if that is negative."""
        return 0 <= self._limits.idle_ms <= now_ms - self.active_ms

    def is_stalled(self, now_ms: int, unread_bytes: int) -> bool:
        """Whether the peer has read none of its unread answers, in memory or on disk, for `stalled_ms`."""
        if unread_bytes != self.unread_bytes or (unread_bytes and self.stalled_since_ms is None):
            self.unread_bytes = unread_bytes
            self.stalled_since_ms = now_ms if unread_bytes else None
            self.active_ms = now_ms
        since_ms = self.stalled_since_ms
        return since_ms is not None and now_ms - since_ms >= self._limits.stalled_ms

    def reads_again(self) -> None:
        """The peer took all that was in memory."""
        self.stalled_since_ms = None

    def overdue_after_ms(self, now_ms: int, pending_bytes: int, served: int) -> int | None:
        """The allowed time if the arriving request, `pending_bytes` so far, has exceeded it; else None."""
        if self.arriving_since_ms is None or served != self._served_before:
            self.arriving_since_ms = now_ms
            self._served_before = served
            return None
        allowed_ms = self._limits.request_arrival_ms + pending_bytes * 1000 // SLOWEST_BYTES_PER_S
        return allowed_ms if now_ms - self.arriving_since_ms > allowed_ms else None

    def waited_ms(self, now_ms: int, number: int) -> int:
        """How long the oldest request without an answer has waited; 0 until its next look is due."""
        if number != self._waiting:
            self._waiting = number
            self._waiting_since_ms, self._look_ms = now_ms, now_ms + GRACE_MS
        if not number or now_ms < self._look_ms:
            return 0
        return now_ms - self._waiting_since_ms

    def look_again(self, limit_ms: int) -> None:
        """The request may wait for `limit_ms`: look again once it is overdue."""
        self._look_ms = self._waiting_since_ms + limit_ms + GRACE_MS

    def look_later(self, now_ms: int) -> None:
        """The request could not be logged in this interval: look again in the next one."""
        self._look_ms = now_ms + INTERVAL_MS

    def look_no_more(self) -> None:
        """The request has been logged, or there is nothing to log: never look at it again."""
        self._look_ms = _NEVER_MS
