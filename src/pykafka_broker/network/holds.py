"""The reasons why no further request of one connection may start, and how each of them ends.

Each is one bit of `reasons`, which the connection checks between two requests. The parts of the connection
set the bits, and `let_go` clears them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_broker.machine.clock import Clock, Timer

#: A handler runs.
HANDLING = 1
#: Too many answers, or too many bytes of them, wait behind one that is not ready.
OUTSTANDING = 2
#: The peer does not read its answers.
UNREAD = 4
#: A quota of the peer is used up.
THROTTLED = 8
#: Other peers do not read their answers, and that of the next request may be large.
OTHERS_UNREAD = 16
#: A round has used up its requests: other connections have their turn.
OTHERS_TURN = 32
#: The connection is closing: this one never ends.
CLOSING = 64
#: An answer is read from its file while it is sent.
SENDING = 128


class Holds:
    """The holds of one connection; `on_free` is called when the last one has ended."""

    __slots__ = ("_clock", "_on_free", "_throttle", "_throttled_until_ms", "reasons")

    def __init__(self, clock: Clock, on_free: Callable[[], None]) -> None:
        self._clock = clock
        self._on_free = on_free
        #: The bits above that are set now; 0 while requests may start.
        self.reasons = 0
        self._throttled_until_ms = 0
        #: The timer that ends the throttle; None without one.
        self._throttle: Timer | None = None

    def let_go(self, reasons: int) -> None:
        """Clear these bits; calls `on_free` if none is left."""
        if self.reasons & reasons:
            self.reasons &= ~reasons
            if not self.reasons:
                self._on_free()

    def throttle(self, duration_ms: int) -> None:
        """Hold for `duration_ms` from now on; a throttle that ends later is not shortened."""
        if self.reasons & CLOSING:
            return
        until_ms = self._clock.monotonic_ms() + duration_ms
        self._throttled_until_ms = max(until_ms, self._throttled_until_ms)
        self.reasons |= THROTTLED
        if self._throttle is None:
            self._throttle = self._clock.call_at(until_ms, self._throttle_ends)

    def _throttle_ends(self) -> None:
        """End the throttle; set the timer again if another answer extended it, or if the timer was early."""
        clock, until_ms = self._clock, self._throttled_until_ms
        if clock.monotonic_ms() < until_ms:
            self._throttle = clock.call_at(until_ms, self._throttle_ends)
        else:
            self._throttle = None
            self.let_go(THROTTLED)

    def why(self) -> str:
        """What the next request waits for, in words for the log; empty if it waits for an earlier request."""
        reasons = self.reasons
        if reasons & THROTTLED:
            left_ms = self._throttled_until_ms - self._clock.monotonic_ms()
            ends = f"ends in {left_ms} ms" if left_ms >= 0 else f"has ended {-left_ms} ms ago"
            return f"the throttle of its client, which {ends}"
        if reasons & UNREAD:
            return "its client, which has not read earlier answers"
        if reasons & SENDING:
            return "an earlier answer, which is still being sent"
        if reasons & OTHERS_UNREAD:
            return "other clients, which have not read their answers"
        return ""

    def close(self) -> None:
        """The connection is lost: start no further request."""
        self.reasons |= CLOSING
        if self._throttle is not None:
            self._throttle.cancel()
            self._throttle = None
