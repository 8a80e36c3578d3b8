"""`max.connection.creation.rate`, of a broker or of one listener."""

from __future__ import annotations


class CreationRate:
    """Counts connections against a rate; a burst may use the whole allowance of one second."""

    def __init__(self, per_second: int, now_ms: int) -> None:
        self.per_second = per_second
        self._allowed = float(per_second)
        self._counted_ms = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """The milliseconds until the next connection may come; 0 is now."""
        rate = self.per_second
        self._allowed = min(rate, self._allowed + (now_ms - self._counted_ms) * rate / 1000)
        self._counted_ms = now_ms
        if self._allowed >= 1:
            return 0
        return max(1, int((1 - self._allowed) * 1000 / rate)) if rate else 1_000

    def count(self) -> None:
        """Count a connection that `wait_ms` allowed."""
        self._allowed -= 1

    def take_back(self) -> None:
        """Undo the last `count`: its connection is not served."""
        self._allowed += 1

    def changed_to(self, per_second: int, now_ms: int) -> CreationRate:
        """The counter to use from now on; the same one if the rate has not changed."""
        return self if per_second == self.per_second else CreationRate(per_second, now_ms)
