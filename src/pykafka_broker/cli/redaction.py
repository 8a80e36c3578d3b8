"""Secrets of users and nodes, which commands that read the metadata log show only if asked to.

They are the keys of SCRAM credentials, and the values of sensitive and of unknown configurations. Apache
Kafka's tools print them.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.config.rules import is_secret_config
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.records.metadata import ConfigRecord

REDACTED = "[redacted]"


def secret_fields(record: Any) -> list[str]:
    """The fields of a metadata record that are not shown."""
    if isinstance(record, ConfigRecord) and not is_secret_config(record.resource_type, record.name):
        return []
    return [
        field.name
        for field in schema_of(record).fields
        if field.is_secret and getattr(record, field.name) is not None
    ]
