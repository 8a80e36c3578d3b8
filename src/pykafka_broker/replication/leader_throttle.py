"""The throttle for followers of a partition (`leader.replication.throttled.replicas`, KIP-73)."""

from __future__ import annotations

from pykafka_broker.log.config import LogConfig
from pykafka_broker.machine.clock import Clock
from pykafka_broker.replication.core.throttling import RateLimit, is_throttled
from pykafka_broker.replication.led_log import LedLog


class LeaderThrottle:
    """The throttle of one partition that this node leads. Event loop only."""

    __slots__ = ("_clock", "_is_throttled", "_led", "_rate")

    def __init__(self, led: LedLog, rate: RateLimit, clock: Clock) -> None:
        self._led = led
        self._rate = rate
        self._clock = clock
        self._is_throttled = False

    def configure(self, config: LogConfig, node_id: int) -> None:
        """Apply the topic's settings."""
        replicas = config.leader_replication_throttled_replicas
        self._is_throttled = is_throttled(replicas, self._led.log.partition, node_id)

    def holds_back(self, replica_id: int) -> bool:
        """Whether a follower gets no records now: it is not in sync, and the throttle is exceeded."""
        leadership = self._led.leadership
        return (
            self._is_throttled
            and leadership is not None
            and replica_id not in leadership.isr.committed
            and self._rate.is_exceeded(self._clock.monotonic_ms())
        )

    def count(self, size_bytes: int) -> None:
        """Records have been sent to a follower; they count if the partition is throttled."""
        if self._is_throttled:
            self._rate.count(size_bytes, self._clock.monotonic_ms())
