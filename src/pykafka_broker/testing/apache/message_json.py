"""A message as the JSON that Apache Kafka's generated `JsonConverter` classes read and write.

Names are in camel case, bytes in base64, ids in Kafka's unpadded url-safe base64. A tagged field with its
default is left out. `records` are read like bytes, but only their size is written: `written=True`.
"""

from __future__ import annotations

import base64
from typing import Any

from pykafka_broker.protocol.fields import Field, blank, schema_of, uuid_text


def kafka_json(message: Any, version: int, *, written: bool = False) -> dict[str, Any]:
    """The JSON of `message`; `version` must be able to carry it."""
    described = {}
    for field in schema_of(message).fields:
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if field.tag is not None and value == _absent(field, version):
            continue
        name = camel_case(field.name)
        if written and field.kind == "records" and value is not None:
            described[name + "SizeInBytes"] = len(value)
        else:
            described[name] = _described(field, value, version, written)
    return described


def _absent(field: Field, version: int) -> Any:
    """The value of a tagged field that is not on the wire."""
    if field.struct is not None and version in field.nullable:
        return blank(field.struct)
    return field.default


def _described(field: Field, value: Any, version: int, written: bool) -> Any:
    if value is None:
        return None
    if field.kind == "array":
        assert field.element is not None
        return [_described(field.element, item, version, written) for item in value]
    if field.kind == "struct":
        return kafka_json(value, version, written=written)
    if field.kind in ("binary", "records"):
        return base64.b64encode(value).decode()
    if field.kind == "uuid":
        return uuid_text(value)
    return value


def camel_case(name: str) -> str:
    """`kraft_version_feature` is `kRaftVersionFeature`."""
    first, *rest = name.split("_")
    return first.replace("kraft", "kRaft") + "".join(word.capitalize() for word in rest)
