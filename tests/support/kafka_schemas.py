"""Apache Kafka's own message schemas, read from its jars, and how our declarations differ from them.

Both sides are laid out version by version as what is on the wire: fields with their type, null, tag, default
and what they name.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykafka_broker.protocol.fields import REQUIRED, ZERO_UUID, Field, schema_of, version_range

KINDS = {
    "int8": "i8",
    "int16": "i16",
    "uint16": "u16",
    "uint32": "u32",
    "int32": "i32",
    "int64": "i64",
    "float64": "f64",
    "bool": "boolean",
    "uuid": "uuid",
    "string": "string",
    "bytes": "binary",
    "records": "records",
}
ZEROS: dict[str, Any] = {
    "f64": 0.0,
    "boolean": False,
    "uuid": ZERO_UUID,
    "string": "",
    "binary": b"",
    "array": [],
}

Json = dict[str, Any]


@dataclass(frozen=True)
class WireField:
    """One field as one version has it. `fields` are those of a struct, or of an array's structs."""

    name: str
    kind: str
    element: str
    nullable: bool
    tag: int | None
    compact: bool
    entity: str | None
    default: object
    fields: tuple[WireField, ...]


def schemas_in(folder: Path) -> dict[str, Json]:
    """Every message schema in the jars of `folder`, by name, but for those inside Kafka Streams."""
    schemas = {}
    for jar in sorted(folder.glob("kafka*.jar")):
        if jar.name.startswith("kafka-streams"):
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                    schema = parse(archive.read(name).decode())
                    assert schema["name"] not in schemas, f"two jars have a {schema['name']}"
                    schemas[schema["name"]] = schema
    return schemas


def parse(text: str) -> Json:
    """Their JSON has comments."""
    schema: Json = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return schema


def differences(ours: type, theirs: Json) -> list[str]:
    """The differences of `ours` from their schema."""
    declared = schema_of(ours)
    found = []
    for what, we, they in [
        ("name", declared.name, theirs["name"]),
        ("api key", declared.api_key, theirs.get("apiKey")),
        ("versions", declared.versions, version_range(theirs["validVersions"])),
        ("flexible versions", declared.flexible, version_range(theirs["flexibleVersions"])),
        ("listeners", declared.listeners, frozenset(theirs.get("listeners", ()))),
        (
            "latest version unstable",
            declared.latest_version_unstable,
            theirs.get("latestVersionUnstable", False),
        ),
    ]:
        if we != they:
            found.append(f"{declared.name}: {what} {we}, theirs {they}")
    for version in version_range(theirs["validVersions"]):
        flexible = version in version_range(theirs["flexibleVersions"])
        path = f"{declared.name} v{version}"
        found += _compare(path, our_layout(ours, version, flexible), their_layout(theirs, version, flexible))
    return found


def _compare(path: str, ours: tuple[WireField, ...], theirs: tuple[WireField, ...]) -> Iterator[str]:
    names = [field.name for field in ours], [field.name for field in theirs]
    if names[0] != names[1]:
        yield f"{path}: fields {names[0]}, theirs {names[1]}"
        return
    for we, they in zip(ours, theirs, strict=True):
        for what in ("kind", "element", "nullable", "tag", "compact", "entity"):
            if getattr(we, what) != getattr(they, what):
                yield f"{path}.{we.name}: {what} {getattr(we, what)}, theirs {getattr(they, what)}"
        if not _same_default(we, they):
            yield f"{path}.{we.name}: default {we.default!r}, theirs {they.default!r}"
        yield from _compare(f"{path}.{we.name}", we.fields, they.fields)


def _same_default(ours: WireField, theirs: WireField) -> bool:
    """Where they name no default, ours may be absent or zero, or None if that can be sent.

    A tag's default decides what is on the wire, so there it must be zero; None is our "absent" for structs.
    """
    if theirs.default is not REQUIRED:
        return type(ours.default) is type(theirs.default) and ours.default == theirs.default
    if ours.tag is not None:
        return bool(ours.default == (None if ours.kind == "struct" else ZEROS.get(ours.kind, 0)))
    if ours.default is REQUIRED or (ours.default is None and ours.nullable):
        return True
    return bool(ours.default == ZEROS.get(ours.kind, 0))


def our_layout(cls: type, version: int, flexible: bool) -> tuple[WireField, ...]:
    """The fields that our declaration has in this version."""
    return tuple(
        _ours(field, version, flexible) for field in schema_of(cls).fields if version in field.versions
    )


def _ours(field: Field, version: int, flexible: bool) -> WireField:
    content = field.element if field.element is not None else field
    return WireField(
        name=field.name,
        kind=field.kind,
        element=field.element.kind if field.element is not None else "",
        nullable=version in field.nullable,
        tag=field.tag,
        compact=flexible and field.compact,
        entity=content.entity,
        default=field.default,
        fields=our_layout(content.struct, version, flexible) if content.struct is not None else (),
    )


def their_layout(schema: Json, version: int, flexible: bool) -> tuple[WireField, ...]:
    """The fields that their schema has in this version."""
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}

    def layout(fields: list[Json]) -> tuple[WireField, ...]:
        return tuple(wire_field(field) for field in fields if version in _versions(field))

    def wire_field(field: Json) -> WireField:
        is_array = field["type"].startswith("[]")
        type_name = field["type"].removeprefix("[]")
        kind = KINDS.get(type_name, "struct")
        entity = field.get("entityType")
        structs = (field.get("fields") or common[type_name]) if kind == "struct" else []
        return WireField(
            name=snake_case(field["name"]),
            kind="array" if is_array else kind,
            element=kind if is_array else "",
            nullable=version in version_range(field.get("nullableVersions", "none")),
            tag=field.get("tag") if version in version_range(field.get("taggedVersions", "none")) else None,
            compact=flexible and field.get("flexibleVersions") != "none",
            entity=snake_case(entity) if entity is not None else None,
            default=_default(field, kind),
            fields=layout(structs),
        )

    return layout(schema["fields"])


def _versions(field: Json) -> range:
    return version_range(field.get("versions") or field["taggedVersions"])


def _default(field: Json, kind: str) -> object:
    """A default is written as JSON of any kind: "null", "-1", -1, "0x7fffffff", "true"; null is none."""
    if field.get("default") is None:
        return REQUIRED
    text = str(field["default"])
    if text == "null":
        return None
    if kind == "boolean":
        return text.lower() == "true"
    return text if kind == "string" else int(text, 0)


def snake_case(name: str) -> str:
    """`KRaftVersionFeature` is `kraft_version_feature`, `V3AndBelowTopics` is `v3_and_below_topics`."""
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
