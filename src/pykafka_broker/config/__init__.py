"""Configuration: Kafka's keys, where their values come from, and which value is in force.

`BrokerConfig` is one broker's effective configuration as an immutable value; `DynamicConfig` holds the
current one and knows where every value came from. The tables of keys are `broker.py`, `topic.py`,
`group.py` and `client_metrics.py`.
"""

from __future__ import annotations

from pykafka_broker.config.dynamic import DynamicConfig
from pykafka_broker.config.keys import ConfigError, ConfigType
from pykafka_broker.config.settings import BrokerConfig
from pykafka_broker.config.topics import log_config_for, validate_topic_configs

__all__ = [
    "BrokerConfig",
    "ConfigError",
    "ConfigType",
    "DynamicConfig",
    "log_config_for",
    "validate_topic_configs",
]
