"""Messages as JSON, in the form Apache Kafka's tools print them, and the records that are messages.

Fields have their JSON names and the order of the schema. A tagged field with its default value is left out.
Bytes are base64, uuids are URL-safe base64 without padding.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from pykafka_broker.cli.output import compact_json
from pykafka_broker.cli.redaction import REDACTED, secret_fields
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import Field, blank, schema_of, uuid_text
from pykafka_broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pykafka_broker.protocol.wire import uvarint

Decoded = tuple[str | None, str | None]
Decoder = Callable[[int, bytes | None, bytes | None], Decoded]

#: The JSON names that do not follow from our field names.
SPELLINGS = {"kraft_version": "kRaftVersion", "kraft_version_feature": "kRaftVersionFeature"}
DELETED = "<DELETE>"


def message_json(message: Any, version: int) -> dict[str, Any]:
    """A message as JSON values."""
    result = {}
    for field in schema_of(message).fields:
        value = getattr(message, field.name)
        if version in field.versions and not _is_left_out(field, value, version):
            result[_json_name(field.name)] = _value_json(value, field, version)
    return result


def _is_left_out(field: Field, value: Any, version: int) -> bool:
    """Whether a tagged field has its default value. The default of a nullable struct is the blank struct."""
    if field.tag is None:
        return False
    if field.struct is not None and version in field.nullable:
        return bool(value == blank(field.struct))
    return bool(value == field.default)


def _value_json(value: Any, field: Field | None, version: int) -> Any:
    kind = None if field is None else field.kind
    if value is None:
        return None
    if kind == "uuid":
        return uuid_text(value)
    if kind == "struct":
        return message_json(value, version)
    if kind == "array":
        element = None if field is None else field.element
        return [_value_json(entry, element, version) for entry in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return value


@cache
def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return SPELLINGS.get(name) or first + "".join(word.capitalize() for word in rest)


# -- records of the metadata log
# --------------------------------------------------------------------------------


def decode_metadata(offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__cluster_metadata`, secrets and all: no key, and a framed message as value."""
    return _decode_metadata(offset, value, shows_secrets=True)


def decode_redacted_metadata(offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    """The same without secrets."""
    return _decode_metadata(offset, value, shows_secrets=False)


def redacted_metadata(offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    """The plain text of a record of `__cluster_metadata`, unless it has secrets."""
    try:
        has_secrets = bool(secret_fields(_metadata_record(value)[0]))
    except NO_RECORD:
        has_secrets = True
    texts = [None if data is None else data.decode(errors="replace") for data in (key, value)]
    return texts[0], REDACTED if has_secrets else texts[1]


def _decode_metadata(offset: int, value: bytes | None, *, shows_secrets: bool) -> Decoded:
    try:
        record, version = _metadata_record(value)
    except NO_RECORD as error:
        return None, f"Error at {offset}, skipping. {error}"
    data = message_json(record, version)
    if not shows_secrets:
        data |= {_json_name(name): REDACTED for name in secret_fields(record)}
    words = re.findall("[A-Z][a-z0-9]*", type(record).__name__)
    shown = {"type": "_".join(word.upper() for word in words), "version": version, "data": data}
    return None, compact_json(shown)


#: The errors of `_metadata_record` for a value that is no known record, or of an unknown version.
NO_RECORD = (ProtocolError, IndexError, StopIteration, ValueError)


def _metadata_record(value: bytes | None) -> tuple[Any, int]:
    from pykafka_broker.cluster.records import RECORD_TYPES

    data = value or b""
    _, at = uvarint(data, 0)
    api_key, at = uvarint(data, at)
    version, at = uvarint(data, at)
    record_type = next(t for t in RECORD_TYPES if schema_of(t).api_key == api_key)
    record: Any
    record, _ = decode(record_type, version, data, at)
    return record, version


# -- records of coordinators
# ------------------------------------------------------------------------------------


def decode_offsets(offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__consumer_offsets`."""
    from pykafka_broker.protocol.messages.records import group

    return _decode_coordinator(group, offset, key, value)


def decode_transactions(offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__transaction_state`."""
    from pykafka_broker.protocol.messages.records import txn

    return _decode_coordinator(txn, offset, key, value)


def decode_share_state(offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__share_group_state`."""
    from pykafka_broker.protocol.messages.records import share

    return _decode_coordinator(share, offset, key, value)


DECODERS: dict[str, Decoder] = {
    "cluster-metadata": decode_redacted_metadata,
    "offsets": decode_offsets,
    "transaction-log": decode_transactions,
    "share-group-state": decode_share_state,
}


def _decode_coordinator(module: Any, offset: int, key: bytes | None, value: bytes | None) -> Decoded:
    if key is None or len(key) < 2:
        return (
            f"Failed to decode message at offset {offset} using the specified decoder "
            "(message had a missing key)",
            None,
        )
    record_type = int.from_bytes(key[:2], "big")
    types = _types_of(module)
    if record_type not in types:
        return f"Unknown record type {record_type} at offset {offset}, skipping.", None
    key_type, value_type = types[record_type]
    decoded_key: Any
    decoded_value: Any
    try:
        decoded_key, _ = decode(key_type, 0, key, 2)
        shown_key = compact_json({"type": str(record_type), "data": message_json(decoded_key, 0)})
        if value is None:
            return shown_key, DELETED
        version = int.from_bytes(value[:2], "big")
        decoded_value, _ = decode(value_type, version, value, 2)
    except (ProtocolError, IndexError, ValueError) as error:
        return f"Error at offset {offset}, skipping. {error}", None
    data = message_json(decoded_value, version)
    if value_type.__name__ == "GroupMetadataValue" and decoded_value.protocol_type == "consumer":
        _show_members(data["members"], decoded_value.members)
    return shown_key, compact_json({"version": str(version), "data": data})


def _types_of(module: Any) -> dict[int, tuple[type, type]]:
    """Record type -> its key class and value class."""
    found: dict[int, list[type | None]] = {}
    for name, cls in vars(module).items():
        if not isinstance(cls, type) or not name.endswith(("Key", "Value")):
            continue
        api_key = getattr(getattr(cls, "__schema__", None), "api_key", None)
        if api_key is not None:
            found.setdefault(api_key, [None, None])[name.endswith("Value")] = cls
    return {number: (key, value) for number, (key, value) in found.items() if key and value}


def _show_members(shown: list[dict[str, Any]], members: Any) -> None:
    """Replace the bytes that the members' clients encoded with their decoded content."""
    for entry, member in zip(shown, members, strict=True):
        for name, cls in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            data = getattr(member, name)
            if not data:
                continue
            version = min(int.from_bytes(data[:2], "big"), schema_of(cls).versions[-1])
            try:
                decoded, _ = decode(cls, version, data, 2)
            except (ProtocolError, IndexError):
                continue
            entry[name] = message_json(decoded, version)
