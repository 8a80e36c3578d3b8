"""What commands that read the metadata log do not show unless they are asked to: secrets of users and nodes.

The keys of SCRAM credentials, and the values of sensitive configurations and of those that are unknown here,
for any of those may be a password. Apache Kafka's tools print them.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.group import GROUP_KEYS
from pykafka_broker.config.settings import base_key
from pykafka_broker.config.topic import TOPIC_KEYS
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.records.metadata import ConfigRecord

REDACTED = "[redacted]"


def is_secret_config(resource_type: int, key: str) -> bool:
    """Whether a value is not shown: that of a sensitive key, or of a key that is unknown here."""
    if resource_type == ResourceType.BROKER:
        row = base_key(key)
        return row is None or row.is_sensitive
    if resource_type == ResourceType.TOPIC:
        return key not in {one.name for one in TOPIC_KEYS}
    if resource_type == ResourceType.GROUP:
        return key not in {one.name for one in GROUP_KEYS}
    return resource_type not in (ResourceType.CLIENT_METRICS, ResourceType.BROKER_LOGGER)


def secret_fields(record: Any) -> list[str]:
    """The fields of a metadata record that are not shown."""
    if isinstance(record, ConfigRecord) and not is_secret_config(record.resource_type, record.name):
        return []
    return [
        field.name
        for field in schema_of(record).fields
        if field.is_secret and getattr(record, field.name) is not None
    ]
