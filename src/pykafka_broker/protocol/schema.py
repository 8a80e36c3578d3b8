"""The declaration of Kafka messages: one class per struct, for all of its versions.

    @message(api_key=3, versions="0-13", flexible="9+")
    class MetadataRequest:
        topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
        allow_auto_topic_creation: bool = boolean("4+", default=True)

Fields are in wire order. A version range is "3" (that one), "3-7", "3+" or "none"; a field without a range is
in every version of the message. A nested struct is declared with `@message()`; whether its encoding is
flexible depends on the message it is part of. `compile.py` turns a declaration and a version into code.

A field without `default=` must be given when we build a message. A field that a version lacks is left out
when encoding, and has its default (or its type's zero) after decoding.

Two attributes of Apache's own schemas are left out: `mapKey`, and `ignorable` (all fields are: encoding omits
a field that an older version lacks). An absent tagged struct is None here, not a struct of defaults, unless
it may also be null on the wire: then None is that null, and an absent struct is `blank`.

Declaring a class creates it twice, because of its slots; nothing is compiled, so importing a message module
stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from pykafka_broker.protocol.fields import REQUIRED, Entity, Field, Schema, version_range

M = TypeVar("M")

#: Replaces a secret in the `repr` of a message, as in Apache Kafka's.
HIDDEN = "[hidden]"


class Message:
    """The base of declared classes: built with keywords, comparable, printable. Mutable, so not hashable."""

    __slots__: tuple[str, ...] = ()
    __schema__: Schema

    def __init__(self, **values: Any) -> None:
        """Compile the real constructor, which replaces this one."""
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
        shown = (
            f"{field.name}={HIDDEN if field.is_secret else repr(getattr(self, field.name))}"
            for field in self.__schema__.fields
        )
        return f"{type(self).__name__}({', '.join(shown)})"


# The field declarations. `versions` says which versions have the field, `nullable` in which it may be None
# (True: in all of them), `tag` makes it a tagged field, `entity` is the kind of thing that the value names; a
# `secret` is not shown by `repr`.


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
    secret: bool = False,
) -> Any:
    """Text; bytes that are not UTF-8 are read as U+FFFD, as Apache does."""
    field = Field(
        "string", versions, nullable=nullable, default=default, tag=tag, entity=entity, is_secret=secret
    )
    field.compact = compact
    return field


def binary(
    versions: str = "",
    *,
    nullable: str | bool = False,
    default: Any = REQUIRED,
    tag: int | None = None,
    secret: bool = False,
) -> Any:
    return Field("binary", versions, nullable=nullable, default=default, tag=tag, is_secret=secret)


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
    return Field("struct", versions, nullable=nullable, default=default, tag=tag, of=of)


def array(
    of: Any,
    versions: str = "",
    *,
    nullable: str | bool = False,
    default: Any = REQUIRED,
    tag: int | None = None,
) -> Any:
    """A list of declared structs, `array(Broker)`, or of plain values, `array(i32())`."""
    element = of if isinstance(of, Field) else Field("struct", of=of)
    return Field("array", versions, nullable=nullable, default=default, tag=tag, of=element)


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
