"""The rules of dynamic configurations, checked by controller and broker before a change is recorded.

The controller uses `TableRules` (`cluster.state.ConfigRules`). Before that, the broker that received the
request calls `validate_broker_configs`, because only that broker knows its static configuration.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pykafka_broker.cluster.broker_names import broker_id_of
from pykafka_broker.config.broker import BROKER
from pykafka_broker.config.client_metrics import CLIENT_METRICS, matchers_of
from pykafka_broker.config.group import GROUP
from pykafka_broker.config.groups import broker_keys
from pykafka_broker.config.keys import LIST, PER_BROKER, READ_ONLY, REQUIRED, ConfigError, Key, render
from pykafka_broker.config.providers import check_providers
from pykafka_broker.config.resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TABLES,
    TOPIC_RESOURCE,
)
from pykafka_broker.config.settings import LISTENER_PREFIX, base_key, check_class
from pykafka_broker.config.topics import validate_topic_configs
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.config.dynamic import DynamicConfig
    from pykafka_broker.config.settings import BrokerConfig

logger = logging.getLogger("kafka.server.KafkaConfig")

#: Keys of a listener that may also be set for all brokers at once.
CLUSTER_WIDE_LISTENER_KEYS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
MIN_PUSH_INTERVAL_MS, MAX_PUSH_INTERVAL_MS = 100, 3_600_000
#: The most refused names that the log explains; a client may invent any number of them.
MOST_SUGGESTIONS = 100


def is_secret_config(resource_type: int, key: str) -> bool:
    """Whether to hide a value: of a sensitive key, or of an unknown key, which may be a password.
    Apache Kafka's tools and its log show values of unknown keys.
    """
    if resource_type == BROKER_RESOURCE:
        row = base_key(key)
        return row is None or row.is_sensitive
    return key not in TABLES.get(resource_type, {})


class TableRules:
    """The controller's knowledge of configuration keys, from the tables and this node's configuration."""

    def __init__(self, configs: DynamicConfig) -> None:
        self.configs = configs
        self._explained: set[tuple[int, str]] = set()

    def validate(self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]) -> None:
        """Check the complete set of values that a resource will have.

        Raises:
            KafkaError: INVALID_CONFIG or INVALID_REQUEST, in Kafka's words.
        """
        try:
            self._validate(resource_type, name, new)
        except KafkaError:
            self._explain_unknown(resource_type, new)
            raise

    def _validate(self, resource_type: int, name: str, new: Mapping[str, str]) -> None:
        if resource_type == TOPIC_RESOURCE:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            validate_topic_configs(new, self.configs.current)
        elif resource_type == GROUP_RESOURCE:
            validate_group_configs(name, new, self.configs.current)
        elif resource_type == CLIENT_METRICS_RESOURCE:
            validate_client_metrics_configs(name, new)
        elif resource_type != BROKER_RESOURCE:  # brokers check their own values
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")

    def _explain_unknown(self, resource_type: int, new: Mapping[str, str]) -> None:
        """Log, once per name, which key may be meant by the first unknown one, which is refused."""
        if resource_type not in TABLES or resource_type == BROKER_RESOURCE:
            return
        unknown = next((key for key in new if key not in TABLES[resource_type]), None)
        if (
            unknown is None
            or (resource_type, unknown) in self._explained
            or len(self._explained) == MOST_SUGGESTIONS
        ):
            return
        from pykafka_broker.config.suggestions import suggested_key, with_suggestion

        if suggested_key(unknown, resource_type) is not None:
            self._explained.add((resource_type, unknown))
            shown = with_suggestion(unknown, resource_type)
            logger.info("Refused an unknown configuration key: %s", shown)

    def is_list(self, resource_type: int, key: str) -> bool:
        """Whether APPEND and SUBTRACT make sense for the key."""
        row = TABLES.get(resource_type, {}).get(key)
        return row is not None and row.type is LIST

    def default(self, resource_type: int, key: str) -> str | None:
        """The value of a key that is not set, from which APPEND and SUBTRACT start."""
        row = TABLES.get(resource_type, {}).get(key)
        return None if row is None or row.default is REQUIRED else render(row.default, row.type)

    def is_secret(self, resource_type: int, key: str) -> bool:
        """Whether the value of a key must not be shown."""
        return is_secret_config(resource_type, key)

    def static(self, key: str) -> str | None:
        """The value of a broker key in this node's own configuration, else the default."""
        return self.configs.static.originals.get(key) or self.default(BROKER_RESOURCE, key)


def validate_group_configs(name: str, new: Mapping[str, str], config: BrokerConfig) -> None:
    """Check the complete set of a group's overrides, which must be within the broker's bounds for groups.

    Raises:
        KafkaError: INVALID_CONFIG, or INVALID_REQUEST for an empty group id.
    """
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    try:
        values = _parsed(new, GROUP, "Unknown group config name: ")
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    for key, value in values.items():
        _, low, high = broker_keys(key)
        if low in BROKER and value < config.values[low]:
            text = f"{key} must be greater than or equal to {low}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)
        if high in BROKER and value > config.values[high]:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{key} must be less than or equal to {high}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values.get(session, config.values[f"group.{session}"]) <= values.get(
            heartbeat, config.values[f"group.{heartbeat}"]
        ):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


def validate_client_metrics_configs(name: str, new: Mapping[str, str]) -> None:
    """Check the complete set of values of a client metrics subscription.

    Raises:
        KafkaError: INVALID_CONFIG or INVALID_REQUEST.
    """
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in new:
        if key not in CLIENT_METRICS:
            text = f"Unknown client metrics configuration: {key}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    try:
        values = _parsed(new, CLIENT_METRICS, "")
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    interval = values.get("interval.ms", MIN_PUSH_INTERVAL_MS)
    if not MIN_PUSH_INTERVAL_MS <= interval <= MAX_PUSH_INTERVAL_MS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for interval.ms, interval must be between {MIN_PUSH_INTERVAL_MS} and "
            f"{MAX_PUSH_INTERVAL_MS} (1 hour)",
        )
    try:
        matchers_of(values.get("match", ()))
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _parsed(texts: Mapping[str, str], table: Mapping[str, Key], unknown: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in table:
            raise ConfigError(unknown + name)
        values[name] = table[name].parse(text)
    return values


def validate_broker_configs(name: str, new: Mapping[str, str], configs: DynamicConfig) -> None:
    """Check the complete set of dynamic values of this broker, or of all brokers if `name` is empty.

    Raises:
        KafkaError: INVALID_REQUEST, in Kafka's words.
    """
    node_id = configs.static.node_id
    if name:
        broker_id = broker_id_of(name)
        if broker_id is None:
            text = f"Node id must be an integer, but it is: {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        if broker_id != node_id:
            text = f"Unexpected broker id, expected {node_id}, but received {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    for reason, names in (
        ("Cannot update these configs dynamically", [key for key in new if _is_read_only(key)]),
        (
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [key for key in new if _needs_listener_prefix(key)],
        ),
    ):
        _refuse(reason, names)
    try:
        check_providers(new)
        for key, text in new.items():
            if row := base_key(key):
                row.parse(text)
                _check_class(row, key, text)
        if not name:
            _refuse(
                "Cannot update these configs at default cluster level, broker id must be specified",
                [key for key in new if _is_per_broker(key)],
            )
        cluster, broker = (configs.cluster_overrides, new) if name else (new, configs.broker_overrides)
        config = configs.static.with_dynamic({**cluster, **broker})
        _check_cleaner_threads(config["log.cleaner.threads"], configs.current["log.cleaner.threads"])
        config.check_change(configs.current)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _check_class(row: Key, name: str, text: str) -> None:
    """As `check_class`; Kafka's error for a prefixed key that is not dynamic is longer."""
    try:
        check_class(row, text)
    except ConfigError as error:
        if row.scope != READ_ONLY or name == row.name:
            raise
        raise ConfigError(
            f"Invalid value org.apache.kafka.common.config.ConfigException: {error} for configuration "
            "Invalid dynamic configuration"
        ) from None


def _check_cleaner_threads(new: int, current: int) -> None:
    """Check that the number of cleaner threads is at most halved or doubled."""
    if new == current:
        return
    if new < 1:
        raise ConfigError("Log cleaner threads should be at least 1")
    if new < current // 2:
        raise ConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    if new > current * 2:
        raise ConfigError(
            f"Log cleaner threads cannot be increased to more than double the current value {current}"
        )


def _refuse(reason: str, names: list[str]) -> None:
    if names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(names)}]")


def _is_read_only(name: str) -> bool:
    row = BROKER.get(name)
    return row is not None and row.scope == READ_ONLY


def _needs_listener_prefix(name: str) -> bool:
    return name.startswith("ssl.") and name in BROKER


def _is_per_broker(name: str) -> bool:
    row = base_key(name)
    if name.startswith(LISTENER_PREFIX):
        return row is None or row.name not in CLUSTER_WIDE_LISTENER_KEYS
    return row is not None and row.scope == PER_BROKER
