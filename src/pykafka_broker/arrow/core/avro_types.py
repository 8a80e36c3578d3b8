"""The Arrow type of an Avro schema, and schemas as the decoder takes them. Pure.

Records are structs, enums strings, maps maps from string; `[null, T]` is T. Logical types: date, time,
timestamp (also local), decimal. A UUID is read as its text. A union of several other types, and a record
that contains itself, have no Arrow type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


def arrow_type(schema: Any) -> pa.DataType:
    """The type of the values of a schema that fastavro has parsed and expanded.

    Raises:
        ValueError: there is none; the message says where.
    """
    return _type_of(schema, "the value")


def without_uuids(schema: Any) -> Any:
    """The schema with UUIDs as the strings that they are."""
    if isinstance(schema, list):
        return [without_uuids(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: without_uuids(each) if name in ("type", "items", "values", "fields") else each
        for name, each in schema.items()
        if (name, each) != ("logicalType", "uuid")
    }


def _type_of(schema: Any, place: str) -> pa.DataType:
    if isinstance(schema, list):
        others = [each for each in schema if _name_of(each) != "null"]
        if len(others) != 1:
            raise ValueError(f"{place} of the Avro schema is a union of several types")
        return _type_of(others[0], place)
    if isinstance(schema, str):
        if schema not in _PLAIN:
            raise ValueError(
                f"{place} of the Avro schema is of {schema}, which contains itself or is not known"
            )
        return _PLAIN[schema]
    kind = schema["type"]
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if (kind, logical) in _LOGICAL:
        return _LOGICAL[kind, logical]
    if kind in _NESTED:
        return _NESTED[kind](schema, place)
    # {"type": "string"}, {"type": {"type": ...}}
    return _type_of(kind, place)


def _name_of(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, Mapping) else schema


def _record(schema: Mapping[str, Any], place: str) -> pa.DataType:
    return pa.struct(
        [
            pa.field(each["name"], _type_of(each["type"], f"{place}.{each['name']}"))
            for each in schema["fields"]
        ]
    )


_NESTED: Mapping[str, Callable[[Mapping[str, Any], str], pa.DataType]] = {
    "record": _record,
    "error": _record,
    "enum": lambda _schema, _place: pa.string(),
    "fixed": lambda schema, _place: pa.binary(schema["size"]),
    "array": lambda schema, place: pa.list_(_type_of(schema["items"], f"{place}[]")),
    "map": lambda schema, place: pa.map_(pa.string(), _type_of(schema["values"], f"{place}{{}}")),
}
