"""The schema of a declared message: its fields, their versions and their defaults.

`schema.py` makes these values from declarations, `codegen.py` turns them into code.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, TypeVar

M = TypeVar("M")

#: A range of versions; open ends reach up to the largest int16.
Versions = range
HIGHEST_VERSION = 0x7FFF

#: The value of a `records` field. Decoding returns a `memoryview` into the request's buffer, or None.
#: Encoding accepts any buffer, or a list or tuple of buffers, which are sent one by one without a copy.
Records = Any

#: What a field's value names.
Entity = Literal["broker_id", "group_id", "producer_id", "topic_name", "transactional_id"]

#: The id that means "no id".
ZERO_UUID = bytes(16)


#: The value of a field without a default that is not on the wire; 0 for kinds not listed.
ZEROS: dict[str, object] = {
    "f64": 0.0,
    "boolean": False,
    "uuid": ZERO_UUID,
    "string": "",
    "binary": b"",
    "records": None,
    "struct": None,
}


class _Required:
    """Stands for the missing default of a field."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@cache
def version_range(text: str) -> Versions:
    """The versions in `text`: "3", "3-7", "3+" or "none"."""
    if text == "none":
        return range(0)
    first, dash, last = text.partition("-")
    if dash:
        return range(int(first), int(last) + 1)
    if text.endswith("+"):
        return range(int(text[:-1]), HIGHEST_VERSION + 1)
    return range(int(text), int(text) + 1)


EVERY_VERSION = version_range("0+")


class Field:
    """One declared field. `@message` sets the name; the element of an array is a field without a name."""

    __slots__ = (
        *("compact", "default", "element", "entity", "is_secret", "kind", "name", "nullable", "struct"),
        *("tag", "versions"),
    )

    def __init__(
        self,
        kind: str,
        versions: str = "",
        *,
        nullable: str | bool = False,
        default: Any = REQUIRED,
        tag: int | None = None,
        of: type | Field | None = None,
        entity: Entity | None = None,
        is_secret: bool = False,
    ) -> None:
        self.name = ""
        #: "i8" … "f64", "boolean", "uuid", "string", "binary", "records", "struct" or "array".
        self.kind = kind
        self.versions = version_range(versions) if versions else EVERY_VERSION
        #: The versions in which the field may be null.
        self.nullable = (
            version_range(nullable) if isinstance(nullable, str) else range(nullable and HIGHEST_VERSION + 1)
        )
        self.default = default
        #: The number of a tagged field, which is not sent if it has its default.
        self.tag = tag
        #: The class of a "struct".
        self.struct = of if isinstance(of, type) else None
        #: The elements of an "array".
        self.element = of if isinstance(of, Field) else None
        #: False for the one string that keeps its two-byte length in flexible versions.
        self.compact = True
        self.entity = entity
        #: Whether the `repr` of a message hides the value.
        self.is_secret = is_secret


class Schema:
    """The schema of a class declared with `@message`; `api_key` is the key of the API, or a record's type."""

    __slots__ = (
        *("api_key", "fields", "flexible", "latest_version_unstable", "listeners", "name", "versions"),
    )

    def __init__(
        self,
        name: str,
        api_key: int | None,
        versions: Versions,
        flexible: Versions,
        fields: tuple[Field, ...],
        listeners: frozenset[str],
        latest_version_unstable: bool,
    ) -> None:
        self.name = name
        self.api_key = api_key
        #: Empty for a struct that only occurs inside messages.
        self.versions = versions
        self.flexible = flexible
        self.fields = fields
        #: The listeners that accept this request: "broker", "controller" or both.
        self.listeners = listeners
        #: Whether Kafka declares the last version of a request without serving it yet.
        self.latest_version_unstable = latest_version_unstable

    @property
    def served_versions(self) -> Versions:
        """The versions that a complete broker or controller serves."""
        return self.versions[:-1] if self.latest_version_unstable else self.versions


def schema_of(message_or_class: object) -> Schema:
    """The schema of a declared class or of one of its objects."""
    schema: Schema = message_or_class.__schema__  # type: ignore[attr-defined]  # `@message` sets it
    return schema


def api_key_of(message_or_class: object) -> int:
    """The key of the API that a request or a response belongs to."""
    api_key = schema_of(message_or_class).api_key
    assert api_key is not None, f"{message_or_class} is neither a request nor a response"
    return api_key


def blank(cls: type[M]) -> M:
    """A struct of defaults; fields without a default are zero."""
    return cls(
        **{
            field.name: [] if field.kind == "array" else ZEROS.get(field.kind, 0)
            for field in schema_of(cls).fields
            if field.default is REQUIRED
        }
    )


def has_records(message_class: type) -> bool:
    """Whether the messages of a class may carry record batches."""

    def carries(field: Field) -> bool:
        if field.element is not None:
            return carries(field.element)
        return field.kind == "records" or (field.struct is not None and has_records(field.struct))

    return any(map(carries, schema_of(message_class).fields))


def error_codes(message: object) -> Iterator[int]:
    """Every `error_code` in a response, in the order of its fields."""
    for field in schema_of(message).fields:
        value = getattr(message, field.name)
        if field.name == "error_code":
            yield value
        elif field.kind == "struct":
            if value is not None:
                yield from error_codes(value)
        elif field.element is not None and field.element.struct is not None:
            for each in value or ():
                yield from error_codes(each)


def uuid_text(uuid: bytes) -> str:
    """16 bytes as Kafka prints ids: base64url without padding, 22 characters."""
    from base64 import urlsafe_b64encode  # most that declare fields print no ids

    return urlsafe_b64encode(uuid).decode().rstrip("=")
