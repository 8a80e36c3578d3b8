"""The resources that have a configuration: their types in the protocol, and the table of keys of each."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.config.broker import BROKER
from pykafka_broker.config.client_metrics import CLIENT_METRICS
from pykafka_broker.config.group import GROUP
from pykafka_broker.config.keys import Key
from pykafka_broker.config.topic import TOPIC

#: Resource types of the protocol.
TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 16, 32

TABLES: dict[int, Mapping[str, Key]] = {
    TOPIC_RESOURCE: TOPIC,
    BROKER_RESOURCE: BROKER,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS,
    GROUP_RESOURCE: GROUP,
}
