"""The rate of new connections of an address (KIP-612): the quota `connection_creation_rate` of `ip` entities.

As in Kafka, the address's own quota goes before the default one, a connection that comes too early does not
count, and the wait is at most one sample.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.quotas.rates import Rate, Window
from pykafka_broker.quotas.usage import Usage


class AddressRates:
    """Counts the connections of each address."""

    def __init__(self, window: Window = Window()) -> None:  # noqa: B008
        #: Whether there is any quota.
        self.is_active = False
        self._window = window
        self._limits: Mapping[str | None, float] = {}
        self._usage = Usage(Rate)

    def apply(self, limits: Mapping[str | None, float]) -> None:
        """Apply these quotas: connections per second by address; None is the default."""
        self._limits = limits
        self.is_active = bool(limits)
        if not limits:
            self._usage.clear()

    def record(self, address: str, now_ms: int) -> int:
        """Count a new connection; return how long it must wait, 0 if it may go on."""
        bound = self._limits.get(address)
        if bound is None:
            bound = self._limits.get(None)
        if bound is None:
            return 0
        rate = self._usage.of(address, now_ms)
        rate.record(self._window, 1, now_ms)
        wait_ms = rate.wait_ms(self._window, bound, now_ms)
        if wait_ms:
            rate.record(self._window, -1, now_ms)
        return min(wait_ms, self._window.sample_ms)
