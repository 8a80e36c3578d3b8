"""What a client is asked to push, from the client metrics subscriptions of the cluster.

The order of the metrics, and with it the id of what a client is asked for, is Apache Kafka's, where sets are
hash tables: so a client may ask a broker of Apache Kafka and push to one of this program, or the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykafka_broker.config.client_metrics import CLIENT_METRICS, Matcher, matchers_of
from pykafka_broker.protocol.java_hash import string_hash, uuid_hash, walked
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.system.named_tuple import NamedTuple

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS: int = CLIENT_METRICS["interval.ms"].default


class Subscription(NamedTuple):
    """One subscription."""

    metrics: tuple[str, ...]
    interval_ms: int
    matchers: Mapping[str, Matcher]

    def selects(self, client: Mapping[str, str]) -> bool:
        """Whether the client with these properties has to push."""
        return all(matcher(client[selector]) for selector, matcher in self.matchers.items())


class Wanted(NamedTuple):
    """What a client is asked for."""

    metrics: tuple[str, ...]
    push_interval_ms: int


def subscription_of(configs: Mapping[str, str]) -> Subscription:
    """The subscription with these values.

    Raises:
        ConfigError: a value is invalid.
    """
    values: dict[str, Any] = {
        name: key.parse(configs[name]) if name in configs else key.default
        for name, key in CLIENT_METRICS.items()
    }
    return Subscription(values["metrics"], values["interval.ms"], matchers_of(values["match"]))


def wanted_of(subscriptions: Mapping[str, Subscription], client: Mapping[str, str]) -> Wanted:
    """All metrics that the subscriptions ask of this client, at their shortest `interval.ms`."""
    interval_ms = DEFAULT_INTERVAL_MS
    metrics: dict[str, None] = {}
    for name in walked(subscriptions, string_hash):
        subscription = subscriptions[name]
        if subscription.selects(client):
            metrics.update(dict.fromkeys(walked(subscription.metrics, string_hash, sized=True)))
            interval_ms = min(interval_ms, subscription.interval_ms)
    if ALL_METRICS in metrics:
        return Wanted((ALL_METRICS,), interval_ms)
    return Wanted(tuple(walked(metrics, string_hash)), interval_ms)


def subscription_id(wanted: Wanted, client_instance_id: bytes) -> int:
    """The id of what an instance is asked for: a checksum of it, mixed with the id of the instance."""
    text = f"[{', '.join(wanted.metrics)}]{wanted.push_interval_ms}"
    number = crc32c(text.encode()) ^ uuid_hash(client_instance_id)
    return number if number < 1 << 31 else number - (1 << 32)
