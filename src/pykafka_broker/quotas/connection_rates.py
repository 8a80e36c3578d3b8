"""Rates of new connections (KIP-612): `max.connection.creation.rate` of a broker and of its listeners, and
the quota `connection_creation_rate` of `ip` entities.

As in Apache Kafka's ConnectionQuotas, the rates are taken over `quota.window.num` samples, so that a burst
may have all connections of the window, and a wait is at most one sample.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.quotas.rates import Rate, Window
from pykafka_broker.quotas.usage import Usage


class ConnectionRate:
    """Counts the connections of a broker, a listener or an address against a bound, which may change."""

    __slots__ = ("_rate", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._rate = Rate()

    def count(self, bound: float, now_ms: int) -> int:
        """Count a new connection; return how many milliseconds it must wait.

        `bound` is in connections per second.
        """
        self._rate.record(self._window, 1, now_ms)
        return min(self._rate.wait_ms(self._window, bound, now_ms), self._window.sample_ms)

    def take_back(self, now_ms: int) -> None:
        """Count one connection less: it is not let in."""
        self._rate.record(self._window, -1, now_ms)


class AddressRates:
    """Counts the connections of each address. The address's own quota goes before the default one, and a
    connection that comes too early does not count.
    """

    def __init__(self, window: Window) -> None:
        #: Whether there is any quota.
        self.is_active = False
        self._limits: Mapping[str | None, float] = {}
        self._usage = Usage(lambda: ConnectionRate(window))

    def apply(self, limits: Mapping[str | None, float]) -> None:
        """Apply these quotas: connections per second by address; None is the default."""
        self._limits = limits
        self.is_active = bool(limits)
        if not limits:
            self._usage.clear()

    def count(self, address: str, now_ms: int) -> int:
        """Count a new connection; return after how many milliseconds to refuse it, 0 if it may go on."""
        bound = self._limits.get(address)
        if bound is None:
            bound = self._limits.get(None)
        if bound is None:
            return 0
        rate = self._usage.of(address, now_ms)
        wait_ms = rate.count(bound, now_ms)
        if wait_ms:
            rate.take_back(now_ms)
        return wait_ms
