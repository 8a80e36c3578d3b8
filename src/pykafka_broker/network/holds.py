"""The reasons why no further request of one connection may start, and how each of them ends.

Each is one bit of `reasons`, which the connection looks at between two requests. Its parts set the bits where
the reason arises, and `let_go` takes them away.
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
#: A long round gives way to other connections.
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
        #: Those of the bits above that hold now: 0 while requests may start.
        self.reasons = 0
        self._throttled_until_ms = 0
        #: Ends the throttle, or is set anew where the end has moved; None while there is none.
        self._throttle: Timer | None = None

    def let_go(self, reasons: int) -> None:
        """These reasons have ended, as far as they held."""
        if self.reasons & reasons:
            self.reasons &= ~reasons
            if not self.reasons:
                self._on_free()

    def throttle(self, duration_ms: int) -> None:
        """Hold for `duration_ms` from now on, or for longer where a throttle that holds already does."""
        if self.reasons & CLOSING:
            return
        until_ms = self._clock.monotonic_ms() + duration_ms
        self._throttled_until_ms = max(until_ms, self._throttled_until_ms)
        self.reasons |= THROTTLED
        if self._throttle is None:
            self._throttle = self._clock.call_at(until_ms, self._throttle_ends)

    def _throttle_ends(self) -> None:
        """The time is up, unless another answer has moved the end, or the timer has come early."""
        clock, until_ms = self._clock, self._throttled_until_ms
        if clock.monotonic_ms() < until_ms:
            self._throttle = clock.call_at(until_ms, self._throttle_ends)
        else:
            self._throttle = None
            self.let_go(THROTTLED)

    def why(self, now_ms: int) -> str:
        """What the next request waits for, as the log says it; empty if that is a request before it."""
        reasons = self.reasons
        if reasons & THROTTLED:
            left_ms = self._throttled_until_ms - now_ms
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
        """Hold for good: the connection is lost."""
        self.reasons |= CLOSING
        if self._throttle is not None:
            self._throttle.cancel()
            self._throttle = None
