"""Topic configuration: makes the `LogConfig` of a partition log from overrides and broker defaults."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.topic import BROKER_SYNONYMS, TOPIC, TOPIC_KEYS
from pykafka_broker.log.config import LogConfig
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.config.settings import BrokerConfig

logger = logging.getLogger("org.apache.kafka.storage.internals.log.LogConfig")

#: Broker keys that a log uses and that topics cannot set.
BROKER_WIDE_KEYS = ("producer.id.expiration.ms", "transaction.partition.verification.enable")


def topic_values(overrides: Mapping[str, str], config: BrokerConfig | None) -> dict[str, Any]:
    """Every topic key's typed value: the topic's own, else the broker's, else Kafka's default.

    Raises:
        ConfigError: an override is malformed or out of bounds.
    """
    values = topic_defaults(config)
    for name, text in overrides.items():
        if key := TOPIC.get(name):
            values[name] = key.parse(text)
    return values


def topic_defaults(config: BrokerConfig | None) -> dict[str, Any]:
    """The typed values of a topic that sets nothing itself."""
    values: dict[str, Any] = {key.name: key.default for key in TOPIC_KEYS}
    if config is None:
        return values
    for name, synonyms in BROKER_SYNONYMS.items():
        for broker_key, factor in synonyms:
            value = config.values[broker_key]
            if value is not None:
                values[name] = value if factor == 1 else value * factor
                break
    if values["retention.ms"] < 0:
        values["retention.ms"] = -1
    return values


def log_config_for(topic_overrides: Mapping[str, str], config: BrokerConfig) -> LogConfig:
    """The configuration of a partition's log.

    Overrides come from the metadata log. A value that this version does not accept (another version may have
    set it) is logged and replaced by the broker's.
    """
    values = topic_defaults(config)
    for name, text in topic_overrides.items():
        key = TOPIC.get(name)
        if key is None:
            continue
        try:
            values[name] = key.parse(text)
        except ConfigError as error:
            logger.error("Ignored a topic config in the metadata log: %s", error)
    if values["internal.segment.bytes"] is not None:
        values["segment.bytes"] = values["internal.segment.bytes"]
    values["cleanup.policy"] = frozenset(values["cleanup.policy"])
    for name in BROKER_WIDE_KEYS:
        values[name] = config.values[name]
    return LogConfig(**{field: values[name] for name, field in _log_config_fields().items()})


@cache
def _log_config_fields() -> dict[str, str]:
    """Key -> field of LogConfig: the same words, with underscores."""
    fields = LogConfig._fields
    names = (*TOPIC, *BROKER_WIDE_KEYS)
    return {name: field for name in names if (field := name.replace(".", "_")) in fields}


def validate_topic_configs(overrides: Mapping[str, str], config: BrokerConfig | None = None) -> None:
    """Check the complete set of a topic's overrides.

    Raises:
        KafkaError: INVALID_CONFIG, with Kafka's message.
    """
    for name in overrides:
        if name not in TOPIC:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    try:
        values = topic_values(overrides, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})",
        )
    if values["remote.storage.enable"]:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
