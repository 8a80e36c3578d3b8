"""One sweep serves all deadlines of all connections; there is no timer per connection.

If a sweep comes late, the process did not run: it was stopped (SIGSTOP), or something occupied its event
loop. Neither peers nor handlers could do anything then, so deadlines do not count that time: the time of
sweeps is that of the monotonic clock without it.
"""

from __future__ import annotations

from pykafka_broker.machine.clock import Timer
from pykafka_broker.network.shared import Shared
from pykafka_broker.system.descriptors import DescriptorReserve

#: The interval at which connections are checked, hence the precision of their deadlines.
SWEEP_MS = 1_000
#: The interval while unsent answers take all the memory they may.
HURRIED_SWEEP_MS = 250
#: A sweep that is later than this is one of a process that stood still.
STANDSTILL_MS = 2_000


class Sweep:
    """Closes connections whose peers take too long, and keeps the descriptor reserve whole."""

    def __init__(self, shared: Shared, reserve: DescriptorReserve) -> None:
        self._shared = shared
        self._reserve = reserve
        self._timer: Timer | None = None
        self._due_ms = 0
        #: How long the process has stood still altogether.
        self._stood_still_ms = 0

    def start(self) -> None:
        """Sweep from now on, if that has not begun yet."""
        if self._timer is None:
            self._schedule()

    def stop(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        limits = self._shared.limits
        shortest = min(
            limits.idle_ms if limits.idle_ms >= 0 else SWEEP_MS * 4,
            limits.request_arrival_ms,
            limits.stalled_ms,
        )
        interval_ms = HURRIED_SWEEP_MS if self._shared.unsent.full else SWEEP_MS
        clock = self._shared.clock
        self._due_ms = clock.monotonic_ms() + max(10, min(interval_ms, shortest // 4))
        self._timer = clock.call_at(self._due_ms, self._sweep)

    def _sweep(self) -> None:
        """Look at every connection once; the next sweep is scheduled even if this one fails."""
        try:
            self._reserve.refill()
            now_ms = self._now_ms()
            for connection in list(self._shared.connections):
                try:
                    connection.check(now_ms)
                except Exception as error:  # check the other connections too
                    self._shared.faults.of_sweep(connection, error)
            if self._shared.unsent.full:
                self._drop_slow_readers(now_ms)
        finally:
            self._schedule()

    def _now_ms(self) -> int:
        """The time of this sweep."""
        now_ms = self._shared.clock.monotonic_ms()
        late_ms = now_ms - self._due_ms
        if late_ms > STANDSTILL_MS:
            self._stood_still_ms += late_ms
            self._shared.faults.of_standstill(late_ms)
        return now_ms - self._stood_still_ms

    def _drop_slow_readers(self, now_ms: int) -> None:
        """Drop peers that read nothing, the most unread bytes first, until half the bound is free."""
        unsent = self._shared.unsent
        stalled = [
            connection
            for connection in self._shared.connections
            if connection.stalled_since_ms is not None and connection.stalled_since_ms < now_ms
        ]
        excess_bytes = unsent.used_bytes - unsent.limit_bytes // 2
        for connection in sorted(stalled, key=lambda connection: -connection.unsent_bytes):
            if excess_bytes <= 0:
                break
            excess_bytes -= connection.unsent_bytes
            connection.drop_unread()
