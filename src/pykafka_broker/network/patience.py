"""The deadlines of a peer: to send a request it began, to read its answers, and for doing nothing at all; and
ours, to answer.

A sweep looks at every connection now and then, reports its progress, and learns whether the time of either is
up. Times are monotonic and as fine as the sweep.
"""

from __future__ import annotations

from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.unanswered import GRACE_MS
from pykafka_broker.system.repeated_lines import INTERVAL_MS

#: A request may take a second longer for so many bytes of it.
SLOWEST_BYTES_PER_S = 16 * 1024

#: When a request is looked at again that has been told of: never.
_NEVER_MS = 1 << 63


class Patience:
    """The deadlines of one connection."""

    __slots__ = (
        "_arriving_since_ms",
        "_limits",
        "_look_ms",
        "_served_before",
        "_waiting",
        "_waiting_since_ms",
        "active",
        "active_ms",
        "stalled_since_ms",
        "unread_bytes",
    )

    def __init__(self, limits: ConnectionLimits, now_ms: int) -> None:
        self._limits = limits
        #: Something moved since the last sweep.
        self.active = True
        #: When a sweep last saw something move.
        self.active_ms = now_ms
        #: Bytes that the peer had not read at the last sweep; the time since it reads nothing, None while it
        #: reads.
        self.unread_bytes = 0
        self.stalled_since_ms: int | None = None
        #: Since when the request has been arriving that is not whole yet, and how many had been served then.
        self._arriving_since_ms: int | None = None
        self._served_before = 0
        #: The oldest request without an answer, by its number on the connection; 0: there is none. Since when
        #: sweeps have seen it wait, and when it is to be looked at.
        self._waiting = 0
        self._waiting_since_ms = self._look_ms = now_ms

    def swept(self, now_ms: int) -> None:
        """A sweep begins."""
        if self.active:
            self.active = False
            self.active_ms = now_ms

    def is_idle(self, now_ms: int) -> bool:
        """Nothing has moved for too long."""
        return 0 <= self._limits.idle_ms <= now_ms - self.active_ms

    def is_stalled(self, now_ms: int, unread_bytes: int) -> bool:
        """The peer has answers to read, in memory or not, and has read none of them for too long."""
        if unread_bytes != self.unread_bytes or (unread_bytes and self.stalled_since_ms is None):
            self.unread_bytes = unread_bytes
            self.stalled_since_ms = now_ms if unread_bytes else None
            self.active_ms = now_ms
        since_ms = self.stalled_since_ms
        return since_ms is not None and now_ms - since_ms >= self._limits.stalled_ms

    def reads_again(self) -> None:
        """The peer took all that was in memory."""
        self.stalled_since_ms = None

    def nothing_arrives(self) -> None:
        """No request is on its way, or this side lets it wait."""
        self._arriving_since_ms = None

    def overdue_after_ms(self, now_ms: int, pending_bytes: int, served: int) -> int | None:
        """The time the arriving request, `pending_bytes` so far, was allowed; None if it is not over."""
        if self._arriving_since_ms is None or served != self._served_before:
            self._arriving_since_ms = now_ms
            self._served_before = served
            return None
        allowed_ms = self._limits.request_arrival_ms + pending_bytes * 1000 // SLOWEST_BYTES_PER_S
        return allowed_ms if now_ms - self._arriving_since_ms > allowed_ms else None

    def waited_ms(self, now_ms: int, number: int) -> int:
        """How long the oldest request without an answer has waited; 0 until it is worth a look."""
        if number != self._waiting:
            self._waiting = number
            self._waiting_since_ms, self._look_ms = now_ms, now_ms + GRACE_MS
        if not number or now_ms < self._look_ms:
            return 0
        return now_ms - self._waiting_since_ms

    def look_again(self, limit_ms: int) -> None:
        """The request that was looked at may wait for so long; look again once it is overdue."""
        self._look_ms = self._waiting_since_ms + limit_ms + GRACE_MS

    def look_later(self, now_ms: int) -> None:
        """The log has no room for a line about the request before the next interval of its lines."""
        self._look_ms = now_ms + INTERVAL_MS

    def look_no_more(self) -> None:
        """The log has a line about the request, or there is nothing to tell of it."""
        self._look_ms = _NEVER_MS
