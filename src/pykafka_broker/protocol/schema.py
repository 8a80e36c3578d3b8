"""How a Kafka message is declared: one class per struct, for all of its versions.

    @message(api_key=3, versions="0-13", flexible="9+")
    class MetadataRequest:
        topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
        allow_auto_topic_creation: bool = boolean("4+", default=True)

Fields stand in wire order. A version range is "3" (that one), "3-7", "3+" or "none"; a field that names none
is in every version of the message. A nested struct is declared with `@message()`; whether it is encoded the
flexible way depends on the message it is part of. `compile.py` turns a declaration and a version into code.

A field without `default=` must be given when we build a message. A field that a version lacks is left out
when encoding, and has its default (or its type's zero) after decoding.

What Apache's own schemas say and we do not carry: `ignorable` (we never refuse to leave out a field that an
older version lacks) and `mapKey`. A tagged struct that is absent is None here, not a struct of defaults,
unless it may also be null on the wire: then None is that null, and an absent one is `blank`.

Declaring a class costs about as much as creating it twice, because slots need that; nothing is compiled, so
importing a message module stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, dataclass_transform

M = TypeVar("M")

#: A range of versions; open ends reach up to the largest int16.
Versions = range
HIGHEST_VERSION = 0x7FFF

#: What a `records` field holds. Decoding gives a `memoryview` into the request's buffer, or None. For
#: encoding it may be any buffer, or a list or tuple of buffers that are sent one after the other without
#: being copied.
Records = Any

#: What the value of a field names.
Entity = Literal["broker_id", "group_id", "producer_id", "topic_name", "transactional_id"]

#: The id that stands for "no id".
ZERO_UUID = bytes(16)


#: The value of a field without a default that is not on the wire; 0 if it is not named here.
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
    """The default of a field that has none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


def version_range(text: str) -> Versions:
    """The versions that `text` means: "3", "3-7", "3+" or "none"."""
    if text == "none":
        return range(0)
    first, dash, last = text.partition("-")
    if dash:
        return range(int(first), int(last) + 1)
    if text.endswith("+"):
        return range(int(text[:-1]), HIGHEST_VERSION + 1)
    return range(int(text), int(text) + 1)


EVERY_VERSION = version_range("0+")
NO_VERSION = version_range("none")
_ALL_OR_NONE = {True: EVERY_VERSION, False: NO_VERSION}


class Field:
    """One declared field. `@message` fills in the name; an array's element is a field without one."""

    __slots__ = (
        *("compact", "default", "element", "entity", "kind", "name", "nullable", "struct", "tag", "versions"),
    )

    def __init__(
        self,
        kind: str,
        versions: str = "",
        *,
        nullable: str | bool = False,
        default: Any = REQUIRED,
        tag: int | None = None,
        struct: type | None = None,
        element: Field | None = None,
        compact: bool = True,
        entity: Entity | None = None,
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
        #: The number of a tagged field. Such a field is absent from the wire when it has its default.
        self.tag = tag
        #: The class of a "struct".
        self.struct = struct
        #: What an "array" holds.
        self.element = element
        #: False for the one string that keeps its two-byte length in flexible versions.
        self.compact = compact
        self.entity = entity


class Schema:
    """What `@message` knows of a class. `api_key` is the API's key or, of records that have one, the type."""

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
        #: Empty for a struct that only exists inside messages.
        self.versions = versions
        self.flexible = flexible
        self.fields = fields
        #: Which listeners take a request: "broker", "controller" or both.
        self.listeners = listeners
        #: Whether Kafka declares the last version of a request without serving it yet.
        self.latest_version_unstable = latest_version_unstable

    @property
    def served_versions(self) -> Versions:
        """The versions that a complete broker or controller serves."""
        return self.versions[:-1] if self.latest_version_unstable else self.versions


class Message:
    """What a declared class can do: be built with keywords, compared, printed. Mutable, so not hashable."""

    __slots__: tuple[str, ...] = ()
    __schema__: Schema

    def __init__(self, **values: Any) -> None:
        """The first construction compiles the real constructor, which then replaces this one."""
        from pykafka_broker.protocol.compile import constructor

        cls = type(self)
        cls.__init__ = constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def schema_of(message_or_class: object) -> Schema:
    """The schema of a declared class or of one of its objects."""
    schema: Schema = message_or_class.__schema__  # type: ignore[attr-defined]
    return schema


def api_key_of(message_or_class: object) -> int:
    """The key of the API that a request or a response belongs to."""
    api_key = schema_of(message_or_class).api_key
    assert api_key is not None, f"{message_or_class} is neither a request nor a response"
    return api_key


def blank(cls: type[M]) -> M:
    """A struct of defaults and, where there are none, zeros."""
    return cls(
        **{
            field.name: [] if field.kind == "array" else ZEROS.get(field.kind, 0)
            for field in schema_of(cls).fields
            if field.default is REQUIRED
        }
    )


# The field declarations. `versions` says which versions have the field, `nullable` in which it may be None
# (True: in all of them), `tag` makes it a tagged field, `entity` says what the value names.


def i8(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    return Field("i8", versions, default=default, tag=tag)


def i16(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    return Field("i16", versions, default=default, tag=tag)


def u16(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    return Field("u16", versions, default=default, tag=tag)


def u32(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    return Field("u32", versions, default=default, tag=tag)


def i32(
    versions: str = "", *, default: Any = REQUIRED, tag: int | None = None, entity: Entity | None = None
) -> Any:
    return Field("i32", versions, default=default, tag=tag, entity=entity)


def i64(
    versions: str = "", *, default: Any = REQUIRED, tag: int | None = None, entity: Entity | None = None
) -> Any:
    return Field("i64", versions, default=default, tag=tag, entity=entity)


def f64(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    return Field("f64", versions, default=default, tag=tag)


def boolean(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    return Field("boolean", versions, default=default, tag=tag)


def uuid(versions: str = "", *, default: Any = REQUIRED, tag: int | None = None) -> Any:
    """16 bytes; `uuid.UUID` objects would cost more than the rest of a message."""
    return Field("uuid", versions, default=default, tag=tag)


def string(
    versions: str = "",
    *,
    nullable: str | bool = False,
    default: Any = REQUIRED,
    tag: int | None = None,
    compact: bool = True,
    entity: Entity | None = None,
) -> Any:
    """Text; bytes that are not UTF-8 are read as U+FFFD, as Apache does."""
    return Field(
        "string", versions, nullable=nullable, default=default, tag=tag, compact=compact, entity=entity
    )


def binary(
    versions: str = "", *, nullable: str | bool = False, default: Any = REQUIRED, tag: int | None = None
) -> Any:
    return Field("binary", versions, nullable=nullable, default=default, tag=tag)


def records(versions: str = "", *, nullable: str | bool = False, default: Any = REQUIRED) -> Any:
    """Record batches, never copied by the codec (see `Records`)."""
    return Field("records", versions, nullable=nullable, default=default)


def struct(
    of: type,
    versions: str = "",
    *,
    nullable: str | bool = False,
    default: Any = REQUIRED,
    tag: int | None = None,
) -> Any:
    return Field("struct", versions, nullable=nullable, default=default, tag=tag, struct=of)


def array(
    of: Any,
    versions: str = "",
    *,
    nullable: str | bool = False,
    default: Any = REQUIRED,
    tag: int | None = None,
) -> Any:
    """A list of declared structs, `array(Broker)`, or of plain values, `array(i32())`."""
    element = of if isinstance(of, Field) else Field("struct", struct=of)
    return Field("array", versions, nullable=nullable, default=default, tag=tag, element=element)


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(
        i8,
        i16,
        u16,
        i32,
        u32,
        i64,
        f64,
        boolean,
        uuid,
        string,
        binary,
        records,
        struct,
        array,
    ),
)
def message(
    *,
    api_key: int | None = None,
    versions: str = "none",
    flexible: str = "none",
    listeners: str = "",
    latest_version_unstable: bool = False,
) -> Callable[[type[M]], type[M]]:
    """Turn a class of field declarations into a message class with slots; `@message()` is a nested struct.

    `listeners` of a request: "broker", "controller" or "broker controller".
    """

    def declare(cls: type[M]) -> type[M]:
        members = dict(cls.__dict__)
        del members["__dict__"], members["__weakref__"]
        fields = []
        for name, value in cls.__dict__.items():
            if type(value) is Field:
                value.name = name
                fields.append(value)
                del members[name]
        members["__slots__"] = tuple([field.name for field in fields])
        members["__schema__"] = Schema(
            cls.__name__,
            api_key,
            version_range(versions),
            version_range(flexible),
            tuple(fields),
            frozenset(listeners.split()),
            latest_version_unstable,
        )
        if api_key is not None:
            members["api_key"] = api_key
        declared: type[M] = type(cls.__name__, (Message,), members)
        return declared

    return declare
