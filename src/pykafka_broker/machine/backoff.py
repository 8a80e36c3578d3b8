"""Pauses that grow from one failure to the next, up to a limit, as Apache Kafka's ExponentialBackoff.

The random part of two percent is left out, because only one node waits here.
"""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple


class Backoff(NamedTuple):
    """`first_ms` after the first failure, then twice as long after each, at most `greatest_ms`."""

    first_ms: int = 100
    greatest_ms: int = 10_000

    def pause_ms(self, failures_before: int) -> int:
        """The pause after a failure that followed `failures_before` others."""
        # The exponent is limited too, because a node may fail for days.
        return min(self.greatest_ms, self.first_ms << min(failures_before, 32))
