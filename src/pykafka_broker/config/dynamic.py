"""Dynamic configuration: the layers of a broker's values, and the effective value.

A broker key takes its value from the first of: the dynamic value of this broker, the dynamic default of all
brokers, the static configuration the process was started with, Kafka's default. The dynamic layers come from
the metadata image; `update` is called with each image.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.settings import BrokerConfig, base_key, check_class

logger = logging.getLogger("kafka.server.DynamicBrokerConfig")

Listener = Callable[[BrokerConfig, BrokerConfig], None]


class DynamicConfig:
    """The effective configuration and the layers below it.

    Attributes:
        static: the configuration the process was started with.
        current: the effective configuration; replaced, never changed.
        cluster_overrides: dynamic values for all brokers.
        broker_overrides: dynamic values for this broker.
    """

    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        self.current = static
        self.cluster_overrides: dict[str, str] = {}
        self.broker_overrides: dict[str, str] = {}
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(old, new)` after each change of the effective configuration."""
        self._listeners.append(listener)

    def update(
        self, cluster_overrides: Mapping[str, str], broker_overrides: Mapping[str, str]
    ) -> frozenset[str]:
        """Replace the dynamic layers; returns the keys whose effective value changed.

        Values were checked when they were set, perhaps by another version: a value that is invalid now is
        logged and ignored, as a running broker must not fail because of its configuration.
        """
        cluster = _usable(cluster_overrides)
        broker = _usable(broker_overrides)
        if cluster == self.cluster_overrides and broker == self.broker_overrides:
            return frozenset()
        try:
            new = self.static.with_dynamic({**cluster, **broker})
        except ConfigError as error:
            logger.error("Dynamic broker configs contradict each other, the previous ones stay: %s", error)
            return frozenset()
        old, self.current = self.current, new
        self.cluster_overrides, self.broker_overrides = cluster, broker
        changed = changed_keys(old, new)
        if changed:
            for listener in self._listeners:
                listener(old, new)
        return changed


def changed_keys(old: BrokerConfig, new: BrokerConfig) -> frozenset[str]:
    """The keys whose typed values differ."""
    before, missing = old.values, object()
    # Nearly all values are identical objects, so compare identity first.
    replaced = [name for name, value in new.values.items() if before.get(name, missing) is not value]
    changed = [name for name in replaced if before.get(name, missing) != new.values[name]]
    return frozenset(changed).union(before.keys() - new.values.keys())


def _usable(overrides: Mapping[str, str]) -> dict[str, str]:
    usable = {}
    for name, text in overrides.items():
        key = base_key(name)
        try:
            if key is not None:
                key.parse(text)
                check_class(key, text)
        except ConfigError as error:
            logger.error("Ignored a dynamic broker config in the metadata log: %s", error)
            continue
        usable[name] = text
    return usable
