"""The Arrow type of a JSON Schema.

    object with properties                   struct, all fields may be null
    object with additionalProperties alone   not supported: its fields would have no names
    array with items                         list
    string, also with enum or const          string
    integer, number, boolean                 int64, double, bool
    [type, "null"], oneOf or anyOf with null the other one

`$ref` within the file is followed. Restrictions of values (required, minimum, pattern, format, ...) are not
checked. A schema that allows several types, or that contains itself, has no Arrow type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pykafka_broker.arrow.schema_file import read_schema

_PLAIN = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


def read_json_schema(path: str) -> pa.DataType:
    """The type of the values that a JSON Schema file describes.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no JSON, or has no Arrow type; the message says where.
    """
    root = read_schema(path)
    return _type_of(root, root, "#", ())


def _type_of(schema: Any, root: Mapping[str, Any], place: str, inside: tuple[str, ...]) -> pa.DataType:
    if not isinstance(schema, Mapping):
        raise ValueError(f"{place} of the JSON Schema says nothing about its type")
    if "$ref" in schema:
        return _referred(str(schema["$ref"]), root, place, inside)
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            others = [each for each in schema[choice] if each != {"type": "null"}]
            if len(others) != 1:
                raise ValueError(f"{place} of the JSON Schema allows several types")
            return _type_of(others[0], root, place, inside)
    kinds = schema.get("type", "string" if _is_text(schema) else None)
    names = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    if len(names) != 1:
        raise ValueError(f"{place} of the JSON Schema allows several types")
    kind = names[0]
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "array":
        return pa.list_(_type_of(schema.get("items"), root, f"{place}/items", inside))
    if kind == "object" and schema.get("properties"):
        return pa.struct(
            [
                pa.field(name, _type_of(each, root, f"{place}/properties/{name}", inside))
                for name, each in schema["properties"].items()
            ]
        )
    raise ValueError(f"{place} of the JSON Schema has no Arrow type")


def _is_text(schema: Mapping[str, Any]) -> bool:
    """Whether only texts are allowed, by name."""
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return bool(allowed) and all(isinstance(each, str) for each in allowed)


def _referred(reference: str, root: Mapping[str, Any], place: str, inside: tuple[str, ...]) -> pa.DataType:
    if reference in inside:
        raise ValueError(f"{reference} of the JSON Schema contains itself")
    if not reference.startswith("#"):
        raise ValueError(f"{place} of the JSON Schema refers to another file, {reference}")
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        try:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise ValueError(
                f"{place} of the JSON Schema refers to {reference}, which is not there"
            ) from None
    return _type_of(found, root, reference, (*inside, reference))
