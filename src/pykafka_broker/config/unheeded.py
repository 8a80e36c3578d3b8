"""Keys without effect in this broker: each is logged once.

Unknown broker keys are logged too: Kafka accepts and keeps them, as a plug-in may know them. So is
`ssl.client.auth` if some listeners ignore it. `name_static` logs the keys that the broker was started with,
`UnheededConfigs` the keys set while it runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pykafka_broker.config.keys import UNHEEDED, ConfigError, Key
from pykafka_broker.config.resources import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TABLES,
    TOPIC_RESOURCE,
)
from pykafka_broker.config.settings import LISTENER_PREFIX, BrokerConfig, base_key

logger = logging.getLogger("kafka.server.KafkaConfig")
_channels_logger = logging.getLogger("kafka.common.network.ChannelBuilders")
_CLIENT_AUTH = "ssl.client.auth"

#: (resource type, name) -> key -> value, from the metadata image.
Configs = Mapping[tuple[int, str], Mapping[str, str]]

_OWNERS = {
    TOPIC_RESOURCE: "topics",
    BROKER_RESOURCE: "brokers",
    GROUP_RESOURCE: "groups",
}


def name_static(config: BrokerConfig) -> None:
    """Log the keys of a file, the environment or overrides that are unknown or have no effect here."""
    if config.unknown:
        from pykafka_broker.config.suggestions import listed

        logger.warning("These configuration keys are unknown: %s", listed(config.unknown))
    if config.unheeded:
        logger.info(
            "These configuration keys make no difference to this broker: %s", ", ".join(config.unheeded)
        )
    if _is_asked_in_vain(config):
        _channels_logger.warning(
            "Broker configuration '%s' is applied only to SSL listeners. Listener-prefixed configuration can "
            "be used to enable SSL client authentication for SASL_SSL listeners. In future releases, "
            "broker-wide option without listener prefix may be applied to SASL_SSL listeners as well. All "
            "configuration options intended for specific listeners should be listener-prefixed.",
            _CLIENT_AUTH,
        )


def _is_asked_in_vain(config: BrokerConfig) -> bool:
    """Whether `ssl.client.auth` is set, and a SASL_SSL listener ignores it (KIP-684)."""
    return config.get(_CLIENT_AUTH) != "none" and any(
        endpoint.security_protocol == "SASL_SSL"
        and config.get(f"{LISTENER_PREFIX}{endpoint.name.lower()}.{_CLIENT_AUTH}") is None
        for endpoint in config.listeners
    )


class UnheededConfigs:
    """Remembers the keys that have been logged; `named` are the broker keys logged at the start."""

    def __init__(self, named: Iterable[str] = ()) -> None:
        self._named = {(BROKER_RESOURCE, name) for name in named}
        self._seen: Configs = {}

    def look(self, configs: Configs) -> None:
        """Log the keys in `configs` that have not been logged yet."""
        seen, self._seen = self._seen, configs
        if seen is configs:
            return
        found: dict[int, set[str]] = {}
        unknown: set[str] = set()
        for resource, values in configs.items():
            resource_type, _ = resource
            if resource_type not in _OWNERS or seen.get(resource) is values:
                continue
            for name, text in values.items():
                if (resource_type, name) in self._named:
                    continue
                if resource_type == BROKER_RESOURCE and base_key(name) is None:
                    unknown.add(name)
                elif _is_unheeded(resource_type, name, text):
                    found.setdefault(resource_type, set()).add(name)
                else:
                    continue
                self._named.add((resource_type, name))
        for resource_type, names in found.items():
            logger.info(
                "These configuration keys of %s make no difference to this broker: %s",
                _OWNERS[resource_type],
                ", ".join(sorted(names)),
            )
        if unknown:
            from pykafka_broker.config.suggestions import listed

            logger.warning("These configuration keys of brokers are unknown: %s", listed(sorted(unknown)))


def _is_unheeded(resource_type: int, name: str, text: str) -> bool:
    """Whether the value would have an effect in Apache Kafka, and has none here."""
    key: Key | None = base_key(name) if resource_type == BROKER_RESOURCE else TABLES[resource_type].get(name)
    if key is None or key.handling != UNHEEDED:
        return False
    try:
        return bool(key.parse(text) != key.default)
    except ConfigError:
        return False
